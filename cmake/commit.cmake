# cmake -DSOURCE=... -DOUT=... -P commit.cmake: the commit that is built, with -dirty if the tree has
# other changes, as a header. It is written only if it says something new.
execute_process(COMMAND git -C ${SOURCE} describe --always --dirty --abbrev=12 --exclude=*
                OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
if(NOT commit)
  set(commit unknown)
endif()
file(CONFIGURE OUTPUT ${OUT} CONTENT "#define FEDSMOOTH_COMMIT \"${commit}\"\n")
