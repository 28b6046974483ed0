# GTest::gtest_main, from the system where that fits, else built from Debian's /usr/src/googletest.
# With a sanitizer the system's library does not fit: it is not instrumented, and containers that cross the
# border give false alarms. When cross compiling the system's is for another machine.

set(godwit_gtest_source /usr/src/googletest)
if(NOT GODWIT_SANITIZE AND NOT CMAKE_CROSSCOMPILING)
  find_package(GTest QUIET)
endif()
if(NOT TARGET GTest::gtest_main)
  if(EXISTS ${godwit_gtest_source}/CMakeLists.txt)
    set(INSTALL_GTEST OFF)
    set(BUILD_GMOCK OFF)
    set(saved_shared ${BUILD_SHARED_LIBS})
    set(BUILD_SHARED_LIBS OFF)
    set(CMAKE_POLICY_VERSION_MINIMUM 3.5)
    set(CMAKE_WARN_DEPRECATED OFF)
    add_subdirectory(${godwit_gtest_source} ${PROJECT_BINARY_DIR}/googletest EXCLUDE_FROM_ALL SYSTEM)
    set(BUILD_SHARED_LIBS ${saved_shared})
    target_compile_options(gtest PRIVATE -O0)  # compiles in a third of the time
    if(NOT TARGET GTest::gtest_main)
      add_library(GTest::gtest_main ALIAS gtest_main)
    endif()
  else()
    message(FATAL_ERROR "godwit's tests need GoogleTest: install libgtest-dev googletest, or configure with "
                        "-DGODWIT_BUILD_TESTS=OFF")
  endif()
endif()
