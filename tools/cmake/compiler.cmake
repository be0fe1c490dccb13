# Language level, warnings, sanitizers, ccache and mold.
#   leat_flags       what every source of ours gets
#   leat_sanitize    -fsanitize=…; the transport and generated code leave it out under TSan (distributed/grpc explains)
#   leat_coverage    what libFuzzer learns from, with LEAT_FUZZ: in all folders but kernels/, which inputs do not reach

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)

if(PROJECT_IS_TOP_LEVEL)
  # libleat.so looks for libleat_cuda.so beside itself; leat looks for leat-viz beside itself.
  set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
  set(CMAKE_LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib)
  set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib)
  set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
endif()

add_library(leat_flags INTERFACE)
target_include_directories(leat_flags INTERFACE ${PROJECT_SOURCE_DIR})
add_library(leat_sanitize INTERFACE)

if(PROJECT_IS_TOP_LEVEL)
  # -Wmissing-field-initializers would reject `{.name = "Relu", .doc = …}`, which omits fields on purpose.
  target_compile_options(leat_flags INTERFACE
    $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Werror -Wno-missing-field-initializers>)
  if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
    # GCC 12's flow-based warnings have false positives in libstdc++ at -O2 and above (its bugs 105329, 105562,
    # 107852): they are shown, or in the case of -Wrestrict dropped, but they do not stop a build.
    target_compile_options(leat_flags INTERFACE
      $<$<COMPILE_LANGUAGE:CXX>:-Wno-restrict -Wno-error=array-bounds -Wno-error=stringop-overflow
        -Wno-error=stringop-overread -Wno-error=maybe-uninitialized -Wno-error=free-nonheap-object>)
  endif()
  if(CMAKE_CXX_COMPILER_ID MATCHES Clang)
    # A sanitizer's checks keep loops from being vectorised; the pragma before them is only a permission.
    target_compile_options(leat_flags INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wno-pass-failed>)
  endif()
  # __FILE__ and __builtin_FILE() read core/tensor.cc wherever the repository lies. ccache passes relative paths on.
  file(RELATIVE_PATH root_from_build ${CMAKE_BINARY_DIR} ${PROJECT_SOURCE_DIR})
  target_compile_options(leat_flags INTERFACE
    $<$<COMPILE_LANGUAGE:CXX>:-fmacro-prefix-map=${PROJECT_SOURCE_DIR}/= -fmacro-prefix-map=${root_from_build}=>)
endif()

add_library(leat_coverage INTERFACE)
if(LEAT_FUZZ)
  target_compile_options(leat_coverage INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-fsanitize=fuzzer-no-link>)
endif()
if(LEAT_SANITIZE)
  target_compile_options(leat_sanitize INTERFACE
    $<$<COMPILE_LANGUAGE:CXX>:-fsanitize=${LEAT_SANITIZE} -fno-omit-frame-pointer>)
  target_link_options(leat_sanitize INTERFACE -fsanitize=${LEAT_SANITIZE})
  if(LEAT_SANITIZE MATCHES undefined)
    target_compile_options(leat_sanitize INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-fno-sanitize-recover=all>)
  endif()
  if(LEAT_SANITIZE MATCHES thread AND CMAKE_CXX_COMPILER_ID STREQUAL GNU)
    target_compile_options(leat_sanitize INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wno-error=tsan>)
  endif()
endif()

if(PROJECT_IS_TOP_LEVEL)
  find_program(LEAT_CCACHE ccache)
  mark_as_advanced(LEAT_CCACHE)
  if(LEAT_CCACHE)
    # Paths relative to the root, and no build folder in the hash: all working trees share one cache.
    set(launcher env CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_NOHASHDIR=1 ${LEAT_CCACHE})
    foreach(language CXX CUDA)
      if(NOT CMAKE_${language}_COMPILER_LAUNCHER)
        set(CMAKE_${language}_COMPILER_LAUNCHER ${launcher})
      endif()
    endforeach()
  endif()
  find_program(LEAT_MOLD mold)
  mark_as_advanced(LEAT_MOLD)
  if(LEAT_MOLD)
    add_link_options(-fuse-ld=mold)
  endif()
endif()
