# One OBJECT library per folder, and libleat.so made of them.
#
# OBJECT, not STATIC: an op is registered by a static object that nothing refers to, and the linker drops such
# members of a static library without a word.

# Under TSan, sources that use generated messages are told what protobuf_without_tsan.inc says.
function(leat_see_protobuf_as_it_is)
  if(NOT LEAT_SANITIZE MATCHES thread)
    return()
  endif()
  foreach(source ${ARGN})
    file(STRINGS ${source} uses REGEX "#include \".*\\.pb\\.h\"|google/protobuf")
    if(uses)
      set_property(SOURCE ${source} APPEND PROPERTY COMPILE_OPTIONS
        -include ${PROJECT_SOURCE_DIR}/tools/cmake/protobuf_without_tsan.inc)
    endif()
  endforeach()
endfunction()

# leat_add_folder(NAME [EXCLUDE regex…] [LINK library…]): target leat_NAME from all .cc below the current folder.
function(leat_add_folder name)
  cmake_parse_arguments(arg "" "" "EXCLUDE;LINK" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cc)
  foreach(pattern ${arg_EXCLUDE})
    list(FILTER sources EXCLUDE REGEX "^${CMAKE_CURRENT_SOURCE_DIR}/${pattern}")
  endforeach()
  if(NOT sources)
    return()
  endif()
  leat_see_protobuf_as_it_is(${sources})
  add_library(leat_${name} OBJECT ${sources})
  target_link_libraries(leat_${name} PRIVATE leat_flags leat_sanitize leat_dependencies ${arg_LINK})
  if(NOT name STREQUAL "kernels")  # its objects are those of the asan preset, which ccache has
    target_link_libraries(leat_${name} PRIVATE leat_coverage)
  endif()
  if(TARGET leat_protobuf)
    target_link_libraries(leat_${name} PRIVATE leat_protobuf_headers)
    add_dependencies(leat_${name} leat_protobuf_headers)
  endif()
  set_property(GLOBAL APPEND PROPERTY LEAT_FOLDERS leat_${name})
endfunction()

# Code for */proto/*.proto, as `#include "graph/proto/graph.pb.h"`.
# Its symbols stay inside libleat.so (hidden), so that a user's own copy of TensorFlow's messages does not meet ours.
function(leat_generate_protobuf)
  file(GLOB protos CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/graph/proto/*.proto
       ${PROJECT_SOURCE_DIR}/graph/formats/proto/*.proto ${PROJECT_SOURCE_DIR}/distributed/proto/*.proto)
  if(NOT protos)
    return()
  endif()
  set(generated ${PROJECT_BINARY_DIR}/generated)
  foreach(proto ${protos})
    file(RELATIVE_PATH path ${PROJECT_SOURCE_DIR} ${proto})
    string(REGEX REPLACE "\\.proto$" ".pb" stem ${generated}/${path})
    add_custom_command(
      OUTPUT ${stem}.cc ${stem}.h
      COMMAND ${CMAKE_COMMAND} -E make_directory ${generated}
      COMMAND protobuf::protoc --proto_path=${PROJECT_SOURCE_DIR} --cpp_out=${generated} ${path}
      WORKING_DIRECTORY ${PROJECT_SOURCE_DIR}
      DEPENDS ${protos} protobuf::protoc  # all of them: one may import another
      COMMENT "protoc ${path}" VERBATIM)
    list(APPEND sources ${stem}.cc)
    list(APPEND headers ${stem}.h)
  endforeach()
  add_custom_target(leat_protobuf_generate DEPENDS ${sources} ${headers})
  add_library(leat_protobuf_headers INTERFACE)
  target_include_directories(leat_protobuf_headers SYSTEM INTERFACE ${generated})
  add_dependencies(leat_protobuf_headers leat_protobuf_generate)
  add_library(leat_protobuf OBJECT ${sources})
  target_link_libraries(leat_protobuf PRIVATE leat_protobuf_headers leat_coverage protobuf::libprotobuf)
  if(NOT LEAT_SANITIZE MATCHES thread)
    target_link_libraries(leat_protobuf PRIVATE leat_sanitize)
  endif()
  set_target_properties(leat_protobuf PROPERTIES CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
  set_property(GLOBAL APPEND PROPERTY LEAT_FOLDERS leat_protobuf)
endfunction()

# libleat.so, once all folders are known.
function(leat_add_library)
  get_property(folders GLOBAL PROPERTY LEAT_FOLDERS)
  if(NOT folders)
    message(STATUS "libleat.so: no sources yet")
    return()
  endif()
  foreach(folder ${folders})
    list(APPEND objects $<TARGET_OBJECTS:${folder}>)
  endforeach()
  add_library(leat SHARED ${objects})
  add_library(Leat::leat ALIAS leat)
  set_target_properties(leat PROPERTIES
    VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
  target_compile_features(leat PUBLIC cxx_std_20)
  # What users of the build see, as those of the installed package do; its own sources see the source folder.
  target_include_directories(leat INTERFACE $<BUILD_INTERFACE:${PROJECT_BINARY_DIR}/include>)
  leat_public_headers(${PROJECT_SOURCE_DIR} headers)
  # What includes a copy is built again when it changes, not one build later.
  set(copies ${headers})
  list(TRANSFORM copies REPLACE "^frontends/cpp/include/leat/" "")
  list(TRANSFORM copies PREPEND ${PROJECT_BINARY_DIR}/include/leat/)
  list(TRANSFORM headers PREPEND ${PROJECT_SOURCE_DIR}/)
  add_custom_command(OUTPUT ${PROJECT_BINARY_DIR}/include/headers.stamp
    BYPRODUCTS ${copies}
    COMMAND ${CMAKE_COMMAND} -D SOURCE=${PROJECT_SOURCE_DIR} -D OUT=${PROJECT_BINARY_DIR}/include
            -P ${PROJECT_SOURCE_DIR}/tools/cmake/public_headers.cmake
    COMMAND ${CMAKE_COMMAND} -E touch ${PROJECT_BINARY_DIR}/include/headers.stamp
    DEPENDS ${headers} ${PROJECT_SOURCE_DIR}/tools/cmake/public_headers.cmake
    COMMENT "include/leat/" VERBATIM)
  add_custom_target(leat_headers DEPENDS ${PROJECT_BINARY_DIR}/include/headers.stamp)
  add_dependencies(leat leat_headers)
  target_link_libraries(leat PRIVATE leat_sanitize leat_dependencies leat_dnnl leat_leveldb)
  if(TARGET leat_transport)
    target_link_libraries(leat PRIVATE leat_transport)
  endif()
  target_link_options(leat PRIVATE -Wl,--as-needed)
  if(LEAT_UNDEFINED)
    target_link_options(leat INTERFACE $<BUILD_INTERFACE:-Wl,--allow-shlib-undefined>)
  elseif(NOT LEAT_SANITIZE)
    target_link_options(leat PRIVATE -Wl,-z,defs)  # a sanitizer's run time lies in the executable
  endif()
endfunction()

