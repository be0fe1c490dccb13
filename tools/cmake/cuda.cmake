# Is the GPU plug-in built? Sets LEAT_HAVE_CUDA, and the target leat_cuda_libraries when it is.
set(LEAT_HAVE_CUDA OFF)
set(LEAT_CUDA_ABSENT "")

if(NOT LEAT_CUDA MATCHES "^(AUTO|ON|OFF)$")
  message(FATAL_ERROR "LEAT_CUDA is '${LEAT_CUDA}': use AUTO, ON or OFF")
endif()

if(LEAT_CUDA STREQUAL OFF)
  set(LEAT_CUDA_ABSENT "LEAT_CUDA is OFF")
else()
  find_program(LEAT_NVCC nvcc HINTS ${CUDAToolkit_ROOT}/bin $ENV{CUDA_HOME}/bin /usr/local/cuda/bin)
  mark_as_advanced(LEAT_NVCC)
  if(NOT LEAT_NVCC AND NOT CMAKE_CUDA_COMPILER)
    set(LEAT_CUDA_ABSENT "no nvcc on PATH or in /usr/local/cuda/bin")
  endif()
endif()

if(NOT LEAT_CUDA_ABSENT)
  if(NOT CMAKE_CUDA_COMPILER)
    set(CMAKE_CUDA_COMPILER ${LEAT_NVCC})
  endif()
  # An nvcc that is there but does not work (too old for C++20 or for this g++, half removed) would stop
  # enable_language: try it first.
  if(NOT LEAT_NVCC_WORKS STREQUAL CMAKE_CUDA_COMPILER)
    set(probe ${PROJECT_BINARY_DIR}/CMakeFiles/leat_nvcc_probe)
    file(WRITE ${probe}.cu "#include <vector>\ntemplate <class T> concept Any = true;\n__global__ void f(Any auto x) {}\n")
    execute_process(COMMAND ${CMAKE_CUDA_COMPILER} -std=c++20 -ccbin ${CMAKE_CXX_COMPILER} -c ${probe}.cu -o ${probe}.o
                    RESULT_VARIABLE failed OUTPUT_VARIABLE output ERROR_VARIABLE output)
    if(failed)
      file(WRITE ${probe}.log "${output}")
      set(LEAT_CUDA_ABSENT "${CMAKE_CUDA_COMPILER} compiles no C++20 with ${CMAKE_CXX_COMPILER}: see ${probe}.log")
    else()
      set(LEAT_NVCC_WORKS ${CMAKE_CUDA_COMPILER} CACHE INTERNAL "the nvcc that passed the probe")
    endif()
  endif()
endif()

if(NOT LEAT_CUDA_ABSENT)
  set(CMAKE_CUDA_ARCHITECTURES ${LEAT_CUDA_ARCHITECTURES})
  set(CMAKE_CUDA_HOST_COMPILER ${CMAKE_CXX_COMPILER})
  enable_language(CUDA)
  # CMake 3.25 does not know that nvcc 12 and later speak C++20.
  if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)
    set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION "-std=c++20")
    set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION "-std=c++20")
  endif()
  set(CMAKE_CUDA_STANDARD 20)
  set(CMAKE_CUDA_STANDARD_REQUIRED ON)
  set(CMAKE_CUDA_EXTENSIONS OFF)
  find_package(CUDAToolkit REQUIRED)

  # cuDNN and NCCL come with the toolkit, as distribution packages, or as Python wheels, which lie in
  # <site-packages>/nvidia/<name>/{include,lib} and have no unversioned .so.
  file(GLOB wheel_roots /usr/local/lib/python3*/*-packages/nvidia /usr/lib/python3/dist-packages/nvidia
       $ENV{VIRTUAL_ENV}/lib/python3*/site-packages/nvidia $ENV{CONDA_PREFIX}/lib/python3*/site-packages/nvidia)
  set(near_toolkit ${CUDAToolkit_LIBRARY_ROOT} ${CUDAToolkit_TARGET_DIR} ${CUDAToolkit_BIN_DIR}/.. /usr/local/cuda)
  foreach(part cudnn nccl)
    string(TOUPPER ${part} name)
    set(roots ${${name}_ROOT} $ENV{${name}_ROOT} ${near_toolkit})
    foreach(root ${near_toolkit} ${wheel_roots})
      list(APPEND roots ${root}/${part} ${root}/nvidia/${part})
    endforeach()
    find_path(LEAT_${name}_INCLUDE_DIR ${part}.h HINTS ${roots} PATH_SUFFIXES include)
    find_library(LEAT_${name}_LIBRARY NAMES ${part} lib${part}.so.9 lib${part}.so.2 HINTS ${roots}
                 PATH_SUFFIXES lib lib64 lib/x86_64-linux-gnu lib/aarch64-linux-gnu)
    mark_as_advanced(LEAT_${name}_INCLUDE_DIR LEAT_${name}_LIBRARY)
    if(NOT LEAT_${name}_INCLUDE_DIR OR NOT LEAT_${name}_LIBRARY)
      string(APPEND LEAT_CUDA_ABSENT "${part}.h or lib${part}.so not found (set ${name}_ROOT). ")
    endif()
  endforeach()
  if(NOT LEAT_CUDA_ABSENT)
    set(LEAT_HAVE_CUDA ON)
    # Never CUDA::cuda_driver: that would make libcuda.so.1 a load-time need of machines that have no GPU.
    add_library(leat_cuda_libraries INTERFACE)
    target_include_directories(leat_cuda_libraries SYSTEM INTERFACE
      ${CUDAToolkit_INCLUDE_DIRS} ${LEAT_CUDNN_INCLUDE_DIR} ${LEAT_NCCL_INCLUDE_DIR})
    target_link_libraries(leat_cuda_libraries INTERFACE
      CUDA::cublas CUDA::cublasLt ${LEAT_CUDNN_LIBRARY} ${LEAT_NCCL_LIBRARY})
    # CMake takes the toolkit's folder for one that the loader knows, and leaves it out of the run path.
    set(LEAT_CUDA_RUN_PATH "")
    foreach(library ${CUDA_cublas_LIBRARY} ${LEAT_CUDNN_LIBRARY} ${LEAT_NCCL_LIBRARY})
      get_filename_component(folder ${library} DIRECTORY)
      list(APPEND LEAT_CUDA_RUN_PATH ${folder})
    endforeach()
    list(REMOVE_DUPLICATES LEAT_CUDA_RUN_PATH)
  endif()
endif()

if(LEAT_HAVE_CUDA)
  message(STATUS "GPU plug-in: nvcc ${CMAKE_CUDA_COMPILER_VERSION}, architectures ${LEAT_CUDA_ARCHITECTURES}")
elseif(LEAT_CUDA STREQUAL ON)
  message(FATAL_ERROR "LEAT_CUDA=ON, but ${LEAT_CUDA_ABSENT}")
else()
  message(STATUS "GPU plug-in: not built (${LEAT_CUDA_ABSENT})")
endif()
