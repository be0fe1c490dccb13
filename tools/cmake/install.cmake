# cmake --install: headers, libraries and commands, and what find_package(Leat) and pkg-config read.
# Public headers show nothing foreign, so a user of the installed package needs no other package.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

file(RELATIVE_PATH prefix_from_pc /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
string(REGEX REPLACE "/$" "" prefix_from_pc ${prefix_from_pc})
file(RELATIVE_PATH lib_from_bin /${CMAKE_INSTALL_BINDIR} /${CMAKE_INSTALL_LIBDIR})
set(libraries leat)
if(TARGET leat_transport)
  list(APPEND libraries leat_transport)
endif()
set_target_properties(${libraries} PROPERTIES INSTALL_RPATH "$ORIGIN")
install(TARGETS ${libraries} EXPORT LeatTargets
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
  INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(DIRECTORY ${PROJECT_BINARY_DIR}/include/leat DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
if(TARGET leat_cuda)
  install(TARGETS leat_cuda LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
endif()
foreach(program leat_command leat_viz)
  if(TARGET ${program})
    set_target_properties(${program} PROPERTIES INSTALL_RPATH "$ORIGIN/${lib_from_bin}")
    install(TARGETS ${program} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
  endif()
endforeach()

set(package ${CMAKE_INSTALL_LIBDIR}/cmake/Leat)
install(EXPORT LeatTargets NAMESPACE Leat:: DESTINATION ${package})
file(WRITE ${PROJECT_BINARY_DIR}/LeatConfig.cmake "include(\${CMAKE_CURRENT_LIST_DIR}/LeatTargets.cmake)\n")
write_basic_package_version_file(${PROJECT_BINARY_DIR}/LeatConfigVersion.cmake COMPATIBILITY SameMinorVersion)
configure_file(${PROJECT_SOURCE_DIR}/tools/cmake/leat.pc.in ${PROJECT_BINARY_DIR}/leat.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/LeatConfig.cmake ${PROJECT_BINARY_DIR}/LeatConfigVersion.cmake
        DESTINATION ${package})
install(FILES ${PROJECT_BINARY_DIR}/leat.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

# GCC reads leat.h precompiled from leat.h.gch/ beside it, where a program includes it first and is compiled with
# the options of one of the files there. Others read the text.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  option(LEAT_PRECOMPILE_HEADER "Make cmake --install precompile leat.h for g++ -std=c++20, -O0 and -O2 (300 MB)" ON)
endif()
if(LEAT_PRECOMPILE_HEADER)
  install(CODE "
    set(include \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_INCLUDEDIR}\")
    file(MAKE_DIRECTORY \${include}/leat/leat.h.gch)
    foreach(level O0 O2)
      message(STATUS \"Precompiling: \${include}/leat/leat.h.gch/\${level}\")
      execute_process(COMMAND \"${CMAKE_CXX_COMPILER}\" -std=c++20 -\${level} -w -x c++-header \${include}/leat/leat.h
                              -I\${include} -o \${include}/leat/leat.h.gch/\${level} COMMAND_ERROR_IS_FATAL ANY)
    endforeach()")
endif()
