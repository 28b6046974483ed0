# Which context switch the library and what is linked to it use: GODWIT_CONTEXT, as a definition for both.
# godwit_context_library(VARIANT) makes the library godwit_VARIANT beside `godwit`: the same objects with another switch (trap: see
# GODWIT_SPARC_FLUSH), for tests and benchmarks that compare them. Included by the top CMakeLists.txt. docs/protocols/context.md.

set(godwit_context_variants asm ucontext setjmp)
if(NOT GODWIT_CONTEXT IN_LIST godwit_context_variants)
  message(FATAL_ERROR "GODWIT_CONTEXT=${GODWIT_CONTEXT}: there are asm, ucontext and setjmp")
endif()
set(godwit_context_definition "")
if(NOT GODWIT_CONTEXT STREQUAL "asm")
  string(TOUPPER "GODWIT_CONTEXT_${GODWIT_CONTEXT}" godwit_context_definition)
endif()

# Continuations go where a shadow stack knows nothing of them: the linker leaves it off when one object lacks the mark. (In assembly:
# switch_x86_64.S.)
function(godwit_context_no_shadow_stack)
  set_property(SOURCE ${PROJECT_SOURCE_DIR}/src/context/portable.cpp PROPERTY SKIP_PRECOMPILE_HEADERS ON)  # its flags are others
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|amd64|AMD64)$")
    set_property(SOURCE ${PROJECT_SOURCE_DIR}/src/context/portable.cpp APPEND PROPERTY COMPILE_OPTIONS -fcf-protection=branch)
  endif()
  if(GODWIT_SANITIZE MATCHES "address")
    set_property(SOURCE ${PROJECT_SOURCE_DIR}/src/context/portable.cpp APPEND PROPERTY COMPILE_OPTIONS -fno-sanitize=address)
  endif()
endfunction()

# The objects of `godwit` but for the switch: nothing else in the library depends on the variant.
function(godwit_context_library variant)
  if(TARGET godwit_${variant} OR variant STREQUAL "asm" OR NOT GODWIT_CONTEXT STREQUAL "asm")
    return()
  endif()
  get_property(objects GLOBAL PROPERTY godwit_objects)
  list(TRANSFORM objects REPLACE "^.*<TARGET_OBJECTS:godwit_context>.*$"
       "$<FILTER:$<TARGET_OBJECTS:godwit_context>,EXCLUDE,/(switch_[a-z0-9_]+[.]S|portable[.]cpp|fork[.]cpp)[.]o$>")
  set(switch portable.cpp)
  string(TOUPPER "GODWIT_CONTEXT_${variant}" definition)
  if(variant STREQUAL "trap")  # SPARC: the same assembly, which flushes windows by the trap
    set(switch switch_sparcv9.S)
    set(definition GODWIT_SPARC_FLUSH_TRAP)
  endif()
  add_library(godwit_${variant} STATIC EXCLUDE_FROM_ALL ${objects} ${PROJECT_SOURCE_DIR}/src/context/${switch}
              ${PROJECT_SOURCE_DIR}/src/context/fork.cpp)
  target_compile_definitions(godwit_${variant} PUBLIC ${definition})
  target_include_directories(godwit_${variant} PUBLIC ${PROJECT_SOURCE_DIR}/include)
  target_compile_features(godwit_${variant} PUBLIC cxx_std_20)
  target_link_libraries(godwit_${variant} PUBLIC ${godwit_system_libraries} PRIVATE godwit_build)
  if(godwit_has_hwloc)
    target_link_libraries(godwit_${variant} PRIVATE hwloc::hwloc)
  endif()
  godwit_context_no_shadow_stack()
endfunction()
