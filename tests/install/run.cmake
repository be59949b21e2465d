# Installs the library into an empty folder, builds a project against it and runs its program.
function(run)
  execute_process(COMMAND ${ARGV} RESULT_VARIABLE status OUTPUT_VARIABLE out ERROR_VARIABLE out)
  if(NOT status EQUAL 0)
    list(JOIN ARGV " " command)
    message(FATAL_ERROR "${command}\n${out}")
  endif()
endfunction()

file(REMOVE_RECURSE ${WORK})
run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${WORK}/prefix)
run(${CMAKE_COMMAND} -G Ninja -S ${SOURCE}/tests/install -B ${WORK}/build
    -DCMAKE_PREFIX_PATH=${WORK}/prefix;${PREFIX} -DPROGRAM=${SOURCE}/examples/certify_image.cpp)
run(${CMAKE_COMMAND} --build ${WORK}/build)
run(${NEAREST_MEAN} ${WORK}/model.safetensors)
run(${WORK}/build/certify_image ${WORK}/model.safetensors)
run(${WORK}/prefix/bin/fedsmooth --version)
file(REMOVE_RECURSE ${WORK})
