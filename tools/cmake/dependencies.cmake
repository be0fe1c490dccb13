# Libraries of the distribution. Only distributed/grpc/ links gRPC and only kernels/ sees oneDNN and Eigen.
set(THREADS_PREFER_PTHREAD_FLAG ON)
find_package(Threads REQUIRED)
find_package(ZLIB REQUIRED)
find_package(PNG REQUIRED)
find_package(JPEG REQUIRED)
find_package(Snappy CONFIG REQUIRED)  # blocks of a checkpoint's index may be compressed
find_package(fmt REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(CLI11 REQUIRED)  # programs only
find_package(Protobuf REQUIRED)  # protobuf 3.21 has no CMake config: CMake's module, and before gRPC's config
find_package(gRPC CONFIG REQUIRED)

# Not oneDNN's own config: Debian's demands OpenCL headers, which nothing here uses.
find_path(LEAT_DNNL_INCLUDE_DIR oneapi/dnnl/dnnl.hpp REQUIRED)
find_library(LEAT_DNNL_LIBRARY dnnl REQUIRED)
mark_as_advanced(LEAT_DNNL_INCLUDE_DIR LEAT_DNNL_LIBRARY)
add_library(leat_dnnl UNKNOWN IMPORTED)
set_target_properties(leat_dnnl PROPERTIES
  IMPORTED_LOCATION ${LEAT_DNNL_LIBRARY}
  INTERFACE_INCLUDE_DIRECTORIES ${LEAT_DNNL_INCLUDE_DIR}
  INTERFACE_LINK_LIBRARIES gomp)  # oneDNN's OpenMP, to tell it that each of our threads works alone

find_package(Eigen3 3.4 CONFIG REQUIRED)  # headers only, compiled into libleat.so

# The table of a checkpoint's index.
find_path(LEAT_LEVELDB_INCLUDE_DIR leveldb/table.h REQUIRED)
find_library(LEAT_LEVELDB_LIBRARY leveldb REQUIRED)
mark_as_advanced(LEAT_LEVELDB_INCLUDE_DIR LEAT_LEVELDB_LIBRARY)
add_library(leat_leveldb UNKNOWN IMPORTED)
set_target_properties(leat_leveldb PROPERTIES
  IMPORTED_LOCATION ${LEAT_LEVELDB_LIBRARY}
  INTERFACE_INCLUDE_DIRECTORIES ${LEAT_LEVELDB_INCLUDE_DIR})

# The syntax of RegexFullMatch.
find_path(LEAT_RE2_INCLUDE_DIR re2/re2.h REQUIRED)
find_library(LEAT_RE2_LIBRARY re2 REQUIRED)
mark_as_advanced(LEAT_RE2_INCLUDE_DIR LEAT_RE2_LIBRARY)
add_library(leat_re2 UNKNOWN IMPORTED)
set_target_properties(leat_re2 PROPERTIES
  IMPORTED_LOCATION ${LEAT_RE2_LIBRARY}
  INTERFACE_INCLUDE_DIRECTORIES ${LEAT_RE2_INCLUDE_DIR})

# What .cc files of libleat.so may use; none of it appears in a public header.
add_library(leat_dependencies INTERFACE)
target_link_libraries(leat_dependencies INTERFACE
  Threads::Threads ${CMAKE_DL_LIBS} ZLIB::ZLIB PNG::PNG JPEG::JPEG Snappy::snappy fmt::fmt nlohmann_json::nlohmann_json protobuf::libprotobuf leat_re2
  absl::flat_hash_map absl::flat_hash_set absl::btree absl::inlined_vector)
