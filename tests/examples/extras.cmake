# Every program of examples/ is run, as its page says (docs/examples.md), and has to print what stands here.
# Included by ../CMakeLists.txt.
if(NOT TARGET example_fib OR GODWIT_SANITIZE MATCHES "thread")
  return()
endif()
include(${CMAKE_CURRENT_LIST_DIR}/../mpi/extras.cmake)

# example(NAME OUTPUT [ARGUMENT...]): OUTPUT is a regular expression.
function(example name output)
  add_test(NAME examples.${name} COMMAND example_${name} ${ARGN})
  set_tests_properties(examples.${name} PROPERTIES PASS_REGULAR_EXPRESSION "${output}" LABELS examples TIMEOUT 60
                       ENVIRONMENT "${env};GODWIT_WORKERS=2")
endfunction()

example(algorithms "999983 different numbers, sum 499991900649, largest without a twin 999982")
example(alpha_beta "9 moves deep: 2, as without threads" 9)
example(bfs "65536 of 65536 vertices within 16 steps")
example(c_fib "fib\\(20\\) = 6765" 20)
example(c_queue "50 consumers took 10000 values, their sum is 50005000")
example(codec "xxxxxxxxxxxxxxxxxxxx: the largest coefficient is 184756")
example(containers "271 lengths; 255 numbers take 100 steps; 63 take more than 250, the first is 6171")
example(echo_server "100 of 100 clients got their bytes back" --self-test)
example(exceptions "stopped by cell 700, the first half is 124750")
example(fib "fib\\(20\\) = 6765" 20)
example(group "8 queens: 92 solutions" 8)
example(heat "94.96 degrees 1 below.*31.1813 degrees 16 below")
example(knapsack "the best choice is worth 406")
example(merge_sort "200000 numbers are sorted")
example(move "every element is 11; ")
example(owning "the longest word of all, .*; 1 owner of the tree is left")
example(pipeline "200 items, checksum 2619433413")
example(rebalance "from 2.00 to 1.[01].*the sum is right")
example(sat_race "100 variables, 426 clauses: no assignment, checked" 100)
example(shared_global "100 has 190569292 partitions.*thousands of results are in the table")
example(simulate "1024 leaves: 2.[67].* ms of virtual time, 7[.]" 10 --godwit-substrate=sim --godwit-workers=8)
example(spawn_at "the sum is 496, and on the way 496; it was at 32 of 32 rows")
example(task_group "base 10: 83 right-truncatable primes, the largest is 73939133")
example(threads "10000 values went through the queue, their sum is 49995000")
example(tree_search "879709 nodes, the deepest at 571" 2)
example(wavefront "601080390")
example(word_count "1589 words, 441 different ones, 100 times the; 30 of one letter; 5.2177470106985524 letters on average; capitals: TACFURADNNNNNNAIBWWO"
        ${PROJECT_SOURCE_DIR}/LICENSE)
foreach(step RANGE 1 5)
  example(tutorial_step${step} "the integral is 0.488148")
endforeach()

# The same where threads leave at every spawn: what two workers show by luck only.
set(arguments_word_count ${PROJECT_SOURCE_DIR}/LICENSE)
foreach(name algorithms alpha_beta codec containers exceptions knapsack merge_sort owning pipeline sat_race shared_global word_count)
  get_test_property(examples.${name} PASS_REGULAR_EXPRESSION output)
  add_test(NAME examples.stolen.${name} COMMAND example_${name} ${arguments_${name}} --godwit-force-steal=random)
  set_tests_properties(examples.stolen.${name} PROPERTIES PASS_REGULAR_EXPRESSION "${output}" LABELS examples
                       TIMEOUT 60 ENVIRONMENT "${env};GODWIT_WORKERS=2")
endforeach()

# Between hosts, where values have to be written and read.
foreach(name alpha_beta codec exceptions)
  get_test_property(examples.${name} PASS_REGULAR_EXPRESSION output)
  godwit_add_mpi_test(NAME examples.hosts.${name} RANKS 2 COMMAND $<TARGET_FILE:example_${name}> --godwit-hosts=ranks
                      --godwit-force-steal=random)
  set_tests_properties(${godwit_mpi_tests} PROPERTIES PASS_REGULAR_EXPRESSION "${output}")
endforeach()
