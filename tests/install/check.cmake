# Installs the build into a scratch prefix, and builds and runs programs that find Leat there by find_package.
#   cmake -D BUILD=… -D SCRATCH=… -D README=… -D GENERATOR=… -D COMPILER=… -D FLAGS=… -P check.cmake
function(run)
  execute_process(COMMAND ${ARGV} COMMAND_ERROR_IS_FATAL ANY)
endfunction()

file(REMOVE_RECURSE ${SCRATCH})
run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${SCRATCH}/prefix)

# One program that includes every installed header.
file(GLOB_RECURSE headers RELATIVE ${SCRATCH}/prefix/include/leat ${SCRATCH}/prefix/include/leat/*.h)
if(NOT headers)
  message(FATAL_ERROR "no header was installed")
endif()
set(main "")
foreach(header ${headers})
  string(APPEND main "#include \"${header}\"\n")
endforeach()
string(APPEND main "int main() { return 0; }\n")
file(WRITE ${SCRATCH}/consumer/main.cc "${main}")
# The program of the README.
file(READ ${README} readme)
string(REGEX MATCH "```cpp\n([^`]*)```" found "${readme}")
if(NOT found)
  message(FATAL_ERROR "${README} has no program")
endif()
file(WRITE ${SCRATCH}/consumer/readme.cc "${CMAKE_MATCH_1}")
file(WRITE ${SCRATCH}/consumer/CMakeLists.txt [[
cmake_minimum_required(VERSION 3.25)
project(Consumer CXX)
find_package(Leat 0.1 REQUIRED)
add_executable(consumer main.cc)
target_link_libraries(consumer PRIVATE Leat::leat)
target_link_options(consumer PRIVATE -Wl,--no-as-needed)
add_executable(readme readme.cc)
target_link_libraries(readme PRIVATE Leat::leat)
]])
run(${CMAKE_COMMAND} -G ${GENERATOR} -S ${SCRATCH}/consumer -B ${SCRATCH}/build
    -D CMAKE_PREFIX_PATH=${SCRATCH}/prefix -D CMAKE_CXX_COMPILER=${COMPILER} -D CMAKE_CXX_FLAGS=${FLAGS})
run(${CMAKE_COMMAND} --build ${SCRATCH}/build)
run(${SCRATCH}/build/consumer)
run(${SCRATCH}/build/readme)
