# Defaults that only the top-level project may set: build type, -O2, ccache, sanitizers, warnings for
# everything. Included by the top CMakeLists.txt; a project that adds godwit as a subdirectory keeps its own
# settings.

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Build type" FORCE)
endif()
foreach(lang C CXX)
  # -O3 bought nothing measurable on the paths that count and makes frames, which travel, larger.
  if(CMAKE_${lang}_FLAGS_RELEASE STREQUAL "-O3 -DNDEBUG")
    set(CMAKE_${lang}_FLAGS_RELEASE "-O2 -DNDEBUG")
  endif()
endforeach()
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_CXX_EXTENSIONS OFF)

find_program(GODWIT_CCACHE ccache)
mark_as_advanced(GODWIT_CCACHE)
if(GODWIT_CCACHE)
  foreach(lang C CXX)
    if(NOT CMAKE_${lang}_COMPILER_LAUNCHER)
      set(CMAKE_${lang}_COMPILER_LAUNCHER ${GODWIT_CCACHE})
    endif()
  endforeach()
endif()

if(GODWIT_SANITIZE)
  set(godwit_sanitize_flags -fsanitize=${GODWIT_SANITIZE} -fno-sanitize-recover=all
                            -fno-omit-frame-pointer -g1)
  if(GODWIT_SANITIZE MATCHES "address")
    # Frames must lie on the stack that migrates, not on AddressSanitizer's fake stack.
    if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
      list(APPEND godwit_sanitize_flags -fsanitize-address-use-after-return=never)
    else()
      list(APPEND godwit_sanitize_flags --param=asan-use-after-return=0)
    endif()
  endif()
  add_compile_options("$<$<COMPILE_LANGUAGE:C,CXX>:${godwit_sanitize_flags}>")
  add_link_options(-fsanitize=${GODWIT_SANITIZE})
endif()
