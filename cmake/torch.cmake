# engine/torch, in a library of objects with LibTorch's flags: all other files are compiled alike with it
# and without, so that a build folder can change between both in a minute.
set(torch_gpu_sources ${torch_sources})
list(FILTER torch_gpu_sources INCLUDE REGEX "/(torch_sampler|fused_forward)\\.cpp$")  # need CUDA too
find_package(Torch REQUIRED)
# TorchConfig looks for libtorch.so in the system's folders too. Two LibTorches in one program crash.
if(TARGET torch_cpu)
  get_target_property(torch_cpu torch_cpu IMPORTED_LOCATION_RELEASE)
  cmake_path(GET TORCH_LIBRARY PARENT_PATH torch_folder)
  cmake_path(GET torch_cpu PARENT_PATH torch_cpu_folder)
  if(torch_cpu AND NOT torch_folder STREQUAL torch_cpu_folder)
    message(FATAL_ERROR "two LibTorches: ${torch_folder} and ${torch_cpu_folder}; "
                        "put the folder above the wanted lib/ into CMAKE_PREFIX_PATH")
  endif()
endif()
list(FILTER TORCH_LIBRARIES EXCLUDE REGEX "^/")  # paths, of libraries that the targets bring anyway
if(TORCH_CXX_FLAGS MATCHES "ABI=0")  # PyTorch before 2.6: all files must pass strings in its way
  add_compile_options(${TORCH_CXX_FLAGS})
  set(fmt fmt::fmt-header-only)
endif()

# Adds files that see LibTorch to a target.
function(add_torch_sources target)
  add_library(${target}_torch OBJECT ${ARGN})
  set_target_properties(${target}_torch PROPERTIES POSITION_INDEPENDENT_CODE ON)
  target_compile_definitions(${target}_torch PRIVATE $<TARGET_PROPERTY:${target},COMPILE_DEFINITIONS>)
  target_include_directories(${target}_torch PRIVATE $<TARGET_PROPERTY:${target},INCLUDE_DIRECTORIES>)
  target_link_libraries(${target}_torch PRIVATE ${TORCH_LIBRARIES} fmt::fmt-header-only)
  target_sources(${target} PRIVATE $<TARGET_OBJECTS:${target}_torch>)
endfunction()

list(REMOVE_ITEM torch_sources ${without_torch})
if(NOT CMAKE_CUDA_COMPILER_LOADED)
  list(REMOVE_ITEM torch_sources ${torch_gpu_sources})
endif()
add_torch_sources(fedsmooth ${torch_sources})
foreach(library ${TORCH_LIBRARIES})
  set_property(TARGET fedsmooth APPEND PROPERTY INTERFACE_LINK_LIBRARIES $<LINK_ONLY:${library}>)
endforeach()
