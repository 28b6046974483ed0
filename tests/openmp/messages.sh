#!/usr/bin/env bash
# What godwit-openmp says where it cannot do what it is asked for: messages.sh LAUNCHER PROGRAM
launcher=$1 program=$2
. "$(dirname "$0")/../pthread/expect.sh"
expect 2 "usage: godwit-openmp" "$launcher"
expect 127 "godwit-openmp: cannot find the program" "$launcher" no-such-program-anywhere
expect 70 "godwit-openmp: OMP_TARGET_OFFLOAD=mandatory: " env OMP_TARGET_OFFLOAD=mandatory "$launcher" "$program" target
expect 70 "godwit-openmp: omp_display_affinity is not done: " "$launcher" "$program" affinity
expect 0 "godwit-openmp: OMP_PROC_BIND=close is ignored: " env OMP_PROC_BIND=close "$launcher" "$program"
expect 0 "godwit-openmp: OMP_NUM_THREADS=many is ignored: " env OMP_NUM_THREADS=many "$launcher" "$program"
expect 0 "godwit-openmp: OMP_SCHEDULE=dynamic,0 is ignored: " env OMP_SCHEDULE=dynamic,0 "$launcher" "$program"
expect 0 "5" env OMP_NUM_THREADS=5 OMP_PROC_BIND=false OMP_STACKSIZE=1M "$launcher" "$program"
expect 0 "2" env OMP_NUM_THREADS=5 OMP_THREAD_LIMIT=2 "$launcher" "$program"
expect 0 "5" env OMP_MAX_ACTIVE_LEVELS=2 OMP_THREAD_LIMIT=5 "$launcher" "$program" nested
expect 0 "3" env OMP_NUM_THREADS=3,2,2,2,2,2,2,2,2,2 "$launcher" "$program"
expect 0 "godwit-openmp: OMP_NUM_THREADS=4, is ignored: " env OMP_NUM_THREADS=4, "$launcher" "$program"
expect 0 "godwit-openmp: OMP_NUM_THREADS=4, -2 is ignored: " env OMP_NUM_THREADS="4, -2" "$launcher" "$program"
expect 0 "1" env OMP_NUM_THREADS=3 OMP_MAX_ACTIVE_LEVELS=0 "$launcher" "$program"
expect 0 "0" env OMP_CANCELLATION=true "$launcher" "$program" late
expect 0 "1" env OMP_CANCELLATION=true "$launcher" "$program" ordered
exit $failed
