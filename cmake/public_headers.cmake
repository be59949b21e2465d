# Installs the public headers: the API in one include, what extensions need beside it, and every
# header of ours that these include. Run at installation, with SOURCE and INCLUDE set.
cmake_policy(VERSION 3.22)
set(headers fedsmooth/fedsmooth.h
    # For objectives that list examples of their own.
    fedsmooth/federated/objectives/example_rows.h fedsmooth/federated/local_step.h)
set(installed)
while(headers)
  list(POP_FRONT headers header)
  if(header IN_LIST installed)
    continue()
  endif()
  list(APPEND installed ${header})
  cmake_path(GET header PARENT_PATH room)
  file(INSTALL ${SOURCE}/${header} DESTINATION ${INCLUDE}/${room})
  file(STRINGS ${SOURCE}/${header} includes REGEX "^#include \"fedsmooth/")
  list(TRANSFORM includes REPLACE "^#include \"([^\"]+)\".*$" "\\1")
  list(APPEND headers ${includes})
endwhile()
