# The programs on global memory (bench/global) at small sizes under MPI, each checking its result: each rank a host of its own,
# where memory of others is cached, with one MPI. With all, and two ranks of one host, if GODWIT_ALL_MPI_TESTS. Without MPI: bench/CMakeLists.txt. Included by ../CMakeLists.txt.
include(${CMAKE_CURRENT_LIST_DIR}/../mpi/extras.cmake)

if(TARGET bench_global_stream AND godwit_mpi_families)
  list(GET godwit_mpi_families 0 one)
  list(GET godwit_mpi_families -1 other)
  if(GODWIT_ALL_MPI_TESTS)
    set(one ${godwit_mpi_families})
    set(other ${godwit_mpi_families})
  endif()
  # godwit_add_bench_mpi_test(NAME ARGUMENT...)
  function(godwit_add_bench_mpi_test name)
    if(GODWIT_ALL_MPI_TESTS)
      godwit_add_mpi_test(NAME mpi.global_${name} RANKS 2 FAMILIES ${other}
                          COMMAND $<TARGET_FILE:bench_global_${name}> ${ARGN} --reps 1 --workers 2)
    endif()
    godwit_add_mpi_test(NAME mpi.global_${name}.hosts RANKS 2 FAMILIES ${one}
                        COMMAND $<TARGET_FILE:bench_global_${name}> ${ARGN} --reps 1 --workers 2 --godwit-hosts=ranks)
  endfunction()
  godwit_add_bench_mpi_test(micro -n 500 --blocks 3 --size 5000)
  godwit_add_bench_mpi_test(bandwidth --size 2 --times 1)
  godwit_add_bench_mpi_test(amr --steps 40)
  godwit_add_bench_mpi_test(stream --size 300001 --stream-size 100003 --grain 4096 --passes 2)
  godwit_add_bench_mpi_test(gups --size 16384 --grain 256 --ways values,atomics)
  godwit_add_bench_mpi_test(cilksort --size 200003 --leaf 1000 --merge-leaf 3000)
  godwit_add_bench_mpi_test(heat --size 99 --steps 31 --rows 4)
  godwit_add_bench_mpi_test(graph --scale 8)
  godwit_add_bench_mpi_test(rmat --scale 12 --sources 1)
  godwit_add_bench_mpi_test(spmv --size 5000 --times 3)
  godwit_add_bench_mpi_test(utsmem --size 4)
  godwit_add_bench_mpi_test(nbody --size 500 --steps 2)
  # The five NAS Parallel Benchmarks, verified, on two hosts.
  godwit_add_mpi_test(NAME mpi.npb.hosts RANKS 2 FAMILIES ${one}
                      COMMAND $<TARGET_FILE:bench_npb> --class S --reps 1 --workers 2 --godwit-hosts=ranks)
  # Storms of moves between four hosts, as they are asked for, but fewer; all of them: scripts/stress_moves.
  godwit_add_mpi_test(NAME mpi.global_storm.hosts RANKS 4 FAMILIES ${one} TIMEOUT 240
                      COMMAND $<TARGET_FILE:bench_global_storm> --runs 20 --moves 1000 --percent 50 --words 4096 --workers 4 --godwit-hosts=ranks)
endif()

if(TARGET bench_common AND NOT CMAKE_CROSSCOMPILING AND NOT sanitized)
  add_executable(bench_library_peers ${CMAKE_CURRENT_LIST_DIR}/library_peers.cpp)
  target_link_libraries(bench_library_peers PRIVATE bench_common)
  add_test(NAME bench.library_peers COMMAND bench_library_peers)
  set_tests_properties(bench.library_peers PROPERTIES LABELS bench TIMEOUT 120)
endif()

find_package(Python3 QUIET COMPONENTS Interpreter)
if(TARGET bench_global_cilksort AND Python3_Interpreter_FOUND AND NOT CMAKE_CROSSCOMPILING)
  add_test(NAME bench.itoyori COMMAND ${Python3_EXECUTABLE} -B ${CMAKE_CURRENT_LIST_DIR}/itoyori_test.py ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR})
  set_tests_properties(bench.itoyori PROPERTIES LABELS bench TIMEOUT 180)
endif()

if(TARGET bench_npb_verify)
  target_sources(bench_npb_verify PRIVATE ${PROJECT_SOURCE_DIR}/bench/npb/verify.cpp)
  target_include_directories(bench_npb_verify PRIVATE ${PROJECT_SOURCE_DIR})
endif()
