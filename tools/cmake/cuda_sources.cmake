# leat_cuda_sources(SOURCES LIBRARIES): what the GPU plug-in is made of: every .cu file of the engine, and the kernel
# files whose first line is `// leat: cpu+cuda`, which are compiled a second time. Those whose first line is
# `// leat: cuda-library` call a library of NVIDIA's; they are in LIBRARIES, apart: where there is no such library, as in
# tests/support/cuda, other files take their place.
function(leat_cuda_sources out_sources out_libraries)
  set(folders core graph kernels runtime distributed)
  list(TRANSFORM folders PREPEND ${PROJECT_SOURCE_DIR}/)
  list(TRANSFORM folders APPEND /*.cu OUTPUT_VARIABLE patterns)
  file(GLOB_RECURSE candidates CONFIGURE_DEPENDS ${patterns})
  file(GLOB_RECURSE kernels CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/kernels/*.cc)
  set(sources "")
  set(libraries "")
  foreach(file ${candidates} ${kernels})
    file(STRINGS ${file} head LIMIT_COUNT 1)
    if(head MATCHES "^// leat: cuda-library")
      list(APPEND libraries ${file})
    elseif(file MATCHES "\\.cu$" OR head MATCHES "^// leat:.*cpu\\+cuda")
      list(APPEND sources ${file})
    endif()
  endforeach()
  # The first lines are read at configure time: configure again when a file changes.
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${candidates})
  set(${out_sources} ${sources} PARENT_SCOPE)
  set(${out_libraries} ${libraries} PARENT_SCOPE)
endfunction()
