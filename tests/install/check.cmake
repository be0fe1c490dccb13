# Installs the build into a scratch prefix, and builds and runs programs that find Leat there by find_package.
#   cmake -D BUILD=… -D SCRATCH=… -D README=… -D GENERATOR=… -D COMPILER=… -D FLAGS=… -P check.cmake
function(run)
  execute_process(COMMAND ${ARGV} COMMAND_ERROR_IS_FATAL ANY)
endfunction()

file(REMOVE_RECURSE ${SCRATCH})
run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${SCRATCH}/prefix)

# Programs that include every installed header: all in one, forwards and backwards, and the public ones one by one. Their
# own tree has files that are called as Leat's are.
file(GLOB_RECURSE headers RELATIVE ${SCRATCH}/prefix/include ${SCRATCH}/prefix/include/leat/*.h)
if(NOT headers)
  message(FATAL_ERROR "no header was installed")
endif()
foreach(own core/tensor.h graph/graph.h kernels/cpu.h runtime/session.h frontends/cpp/session.h)
  file(WRITE ${SCRATCH}/consumer/${own} "#error \"this is the program's own ${own}\"\n")
endforeach()
function(write_includes file)
  set(text "")
  foreach(header ${ARGN})
    string(APPEND text "#include <${header}>\n")
  endforeach()
  file(WRITE ${SCRATCH}/consumer/${file} "${text}")
endfunction()
write_includes(forwards.cc ${headers})
list(REVERSE headers)
write_includes(backwards.cc ${headers})
file(GLOB public RELATIVE ${SCRATCH}/prefix/include ${SCRATCH}/prefix/include/leat/*.h)
foreach(header ${public})
  get_filename_component(name ${header} NAME_WE)
  write_includes(only_${name}.cc ${header})
endforeach()
file(WRITE ${SCRATCH}/consumer/main.cc "int main() { return 0; }\n")
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
include_directories(${CMAKE_SOURCE_DIR})
file(GLOB only only_*.cc)
add_executable(consumer main.cc forwards.cc backwards.cc ${only})
target_link_libraries(consumer PRIVATE Leat::leat)
target_link_options(consumer PRIVATE -Wl,--no-as-needed)
add_executable(readme readme.cc)
target_link_libraries(readme PRIVATE Leat::leat)
target_precompile_headers(readme PRIVATE <leat/leat.h>)
]])
run(${CMAKE_COMMAND} -G ${GENERATOR} -S ${SCRATCH}/consumer -B ${SCRATCH}/build
    -D CMAKE_PREFIX_PATH=${SCRATCH}/prefix -D CMAKE_CXX_COMPILER=${COMPILER} -D CMAKE_CXX_FLAGS=${FLAGS})
run(${CMAKE_COMMAND} --build ${SCRATCH}/build)
run(${SCRATCH}/build/consumer)
run(${SCRATCH}/build/readme)

# The README's program, compiled by its README's line, reads leat.h precompiled.
if(EXISTS ${SCRATCH}/prefix/include/leat/leat.h.gch)
  execute_process(COMMAND ${COMPILER} -std=c++20 -H -c ${SCRATCH}/consumer/readme.cc -I${SCRATCH}/prefix/include
                          -o ${SCRATCH}/readme.o
                  ERROR_VARIABLE read COMMAND_ERROR_IS_FATAL ANY)
  if(NOT read MATCHES "(^|\n)! [^\n]*leat.h.gch/O0")
    message(FATAL_ERROR "g++ -std=c++20 does not use ${SCRATCH}/prefix/include/leat/leat.h.gch/O0: ${read}")
  endif()
endif()

# The name of another library is an error that says what to write.
file(WRITE ${SCRATCH}/consumer/other_name.cc
     "#include <leat/leat.h>\nusing namespace leat;\nOutput f(Output x) { return gather(x, {0, 1}, 1); }\n")
execute_process(COMMAND ${COMPILER} -std=c++20 -c ${SCRATCH}/consumer/other_name.cc -I${SCRATCH}/prefix/include
                        -o ${SCRATCH}/other_name.o
                RESULT_VARIABLE result ERROR_VARIABLE message)
if(result EQUAL 0 OR NOT message MATCHES "write take\\(x, indices, axis\\)")
  message(FATAL_ERROR "gather() must fail with \"write take(x, indices, axis)\", got: ${message}")
endif()
file(REMOVE_RECURSE ${SCRATCH}/prefix/include/leat/leat.h.gch)  # 300 MB
