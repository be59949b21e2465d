# Installs the library into an empty folder and uses it as others do: every public header by itself, a
# program, and a shared object that a Python module could be.
function(run)
  execute_process(COMMAND ${ARGV} RESULT_VARIABLE status OUTPUT_VARIABLE out ERROR_VARIABLE out)
  if(NOT status EQUAL 0)
    list(JOIN ARGV " " command)
    message(FATAL_ERROR "${command}\n${out}")
  endif()
endfunction()

file(REMOVE_RECURSE ${WORK})
run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${WORK}/prefix)
file(GLOB_RECURSE targets ${WORK}/prefix/*fedsmooth-targets*.cmake)
file(STRINGS "${targets}" absolute REGEX "INTERFACE_LINK_LIBRARIES.*[\";]/")
if(absolute)
  message(FATAL_ERROR "an exported target has a path of this machine: ${absolute}")
endif()
run(${CMAKE_COMMAND} -G Ninja -S ${SOURCE}/tests/install -B ${WORK}/build
    -DCMAKE_PREFIX_PATH=${WORK}/prefix;${PREFIX} -DPROGRAM=${SOURCE}/examples/certify_image.cpp
    -DHEADERS=${WORK}/prefix/include)
run(${CMAKE_COMMAND} --build ${WORK}/build)
run(${NEAREST_MEAN} ${WORK}/model.safetensors)
run(${WORK}/build/certify_image ${WORK}/model.safetensors)
run(${WORK}/build/loads_module ${WORK}/build/libmodule.so)
run(${WORK}/prefix/bin/fedsmooth --version)
file(REMOVE_RECURSE ${WORK})
