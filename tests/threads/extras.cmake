# threads_scheduler: the senders of C++26. No compiler that we support has them yet, and no package that
# scripts/setup could install: where a checkout of stdexec is, GODWIT_STDEXEC (or the environment variable) says; without one
# the test is skipped, and says so.
if(TARGET threads_scheduler)
  find_path(GODWIT_STDEXEC stdexec/execution.hpp HINTS ENV GODWIT_STDEXEC DOC "include folder of a checkout of stdexec, for threads_scheduler")
  if(GODWIT_STDEXEC)
    target_include_directories(threads_scheduler SYSTEM PRIVATE ${GODWIT_STDEXEC})
    set_target_properties(threads_scheduler PROPERTIES DISABLE_PRECOMPILE_HEADERS ON)
  else()
    message(STATUS "stdexec not found: godwit/scheduler.hpp is not tested (set GODWIT_STDEXEC to the include folder of a checkout)")
  endif()
endif()
# threads_senders: the same header, with a stand-in of our own for what it uses of stdexec.
if(TARGET threads_senders)
  target_include_directories(threads_senders PRIVATE ${CMAKE_CURRENT_LIST_DIR}/standin)
  set_target_properties(threads_senders PROPERTIES DISABLE_PRECOMPILE_HEADERS ON)
endif()
