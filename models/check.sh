#!/usr/bin/env bash
# Runs the protocol models with spin: each must pass, each mutant must fail. One line per run; exit status 1 if
# any expectation is not met, 77 (ctest: skipped) without spin. Needs 2 cores, < 3 GB, four minutes of CPU time.
#   models/check.sh          what ctest runs (label model)
#   models/check.sh --full   also the large configurations: twenty minutes of CPU time
#   models/check.sh deque    only the runs whose line contains this text
# Counterexamples: cd models; spin -a -DMUTANT x.pml; gcc -DSAFETY -DREACH -o pan pan.c; ./pan -i; spin -p -k x.pml.trail x.pml
case ${1:-} in -h | --help) sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0" && exit ;; esac
set -u
here=$(cd "$(dirname "$0")" && pwd)
command -v spin >/dev/null && command -v gcc >/dev/null || { echo "models: spin or gcc is not installed: skipped"; exit 77; }

if [ "${1:-}" = --run ]; then  # expect | model | flags of the model | flags of gcc | flags of pan
  IFS='|' read -r expect model flags cc run <<<"$2"
  dir=$(mktemp -d "$GODWIT_MODEL_DIR/XXXXXX") && cd "$dir" || exit 1
  name="$model $flags"
  # Of a run with less than some million states most is compiling, unless it is done by tcc.
  compiler="gcc -O1"
  if [[ $cc != *-O2* ]] && command -v tcc >/dev/null; then compiler=tcc; fi
  # shellcheck disable=SC2086
  if ! spin -a $flags "$here/$model.pml" >out 2>&1 || ! $compiler -w -DMEMLIM=3000 $cc -o pan pan.c >>out 2>&1; then
    printf 'WRONG  %-60s does not build\n' "$name"; cat out; exit 1
  fi
  ./pan $run >out 2>&1
  why=$(grep -m1 -oE 'assertion violated.*|invalid end state|acceptance cycle' <(grep '^pan:1:' out) | cut -c1-70)
  states=$(grep -oE '[0-9.e+]+ states, stored' out | cut -d' ' -f1)
  if [ -n "$why" ]; then found=fail
  elif grep -q 'errors: 0' out && ! grep -qE 'too small|out of memory|interrupted|reached -DMEMLIM' out; then found=pass
  else found=unfinished; fi
  rm -f pan
  [ "$found" = "$expect" ] && verdict=ok || verdict=WRONG
  times >time  # of this shell, of its children
  cpu=$(awk '{ gsub(/[ms]/, " "); $0 = $0; t += $1 * 60 + $2 + $3 * 60 + $4 } END { printf "%.1f", t }' time)
  printf '%-6s %-60s %s (%s states, %s s)%s\n' "$verdict" "$name" "$found" "${states:-?}" "$cpu" "${why:+: $why}"
  [ "$verdict" = ok ]
  exit
fi

small="-DSAFETY -DCOLLAPSE" live="-DCOLLAPSE -DNFAIR=4"
runs() {
  # The long ones first.
  if [ "$full" = 1 ]; then
    local small="$small -O2" live="$live -O2"
    echo "fail|idle|-DN=3 -DSPAWNS=0 -DMAILS=2 -DSTATUS -DLOOK_AGAIN -DONE_STEP|$small|-m1000000 -w24"
    echo "pass|idle|-DN=3 -DSPAWNS=1|$small|-m1000000 -w24"
    echo "pass|join|-DCONSUMERS=3|$small|-m100000 -w24"
    echo "pass|deque|-DDEPTH=3 -DTHIEVES=2 -DLEVELS=4|-DSAFETY -DHC4|-m6000000 -w26"
    echo "pass|deque|-DDEPTH=3 -DTHIEVES=1|$small|-m4000000 -w24"
    echo "pass|lazy|-DDEPTH=4 -DSPAWNS=5 -DSIGNALS=3|$small|-m1000000 -w22"
    echo "pass|idle|-DN=3 -DSPAWNS=1 -DLIVE|$live|-a -f -m2000000"
    echo "pass|far|-DAM -DOPS=2|$small|-m1000000 -w22"
    echo "pass|heap||$small|-m1000000 -w22"
    echo "pass|lock_turn|-DTHIEVES=4|$live|-a -f -m1000000"
    echo "pass|idle_poll|-DN=2 -DT=4|$small|-m1000000 -w24"
    echo "pass|idle_poll_nodes|-DN=3|$small|-m1000000 -w24"
    echo "pass|idle_poll_nodes|-DN=3 -DLIVE|$live|-a -f -m2000000"
    echo "pass|idle_nodes|-DN=3 -DLIVE|$live|-a -f -m2000000"
    echo "pass|idle_nodes|-DN=3 -DFAN=2|$small|-m1000000 -w22"
    echo "pass|idle_nodes|-DN=3 -DFAN=2 -DLETTERS=0 -DSPAWNS=2|$small|-m1000000 -w24"
    echo "pass|idle_nodes|-DN=3 -DPER=2 -DLETTERS=2|$small|-m1000000 -w24"
    echo "pass|idle_nodes|-DN=4 -DPER=2|$small|-m1000000 -w24"
    echo "pass|global_map|-DOPS=2|$small|-m1000000 -w24"
    echo "pass|global_map|-DFAR -DNOISE=2|$small|-m1000000 -w24"
    echo "pass|global_map|-DFAR -DBITS_FIRST|$small|-m1000000 -w24"
    echo "pass|global|-DOPS=3|$small|-m1000000 -w24"
    echo "pass|global|-DOPS=2 -DSTART=1 -DWORKERS=4 -DUNITS=2 -DBOTH_WAYS -DCHECKOUTS -DNOISE=0 -DAM|$small|-m1000000 -w22"
    echo "pass|global|-DOPS=3 -DMIXED|$small|-m1000000 -w24"
    echo "pass|global|-DOPS=3 -DSTART=2 -DCHECKOUTS -DBEGUN|$small|-m1000000 -w24"
    echo "pass|global|-DOPS=2 -DBEGUN|$small|-m1000000 -w24"
    echo "pass|global|-DOPS=5 -DSTART=1 -DCHECKOUTS -DNOISE=0|$small|-m1000000 -w24"
    echo "pass|join|-DCONSUMERS=3 -DNO_COPIES|$small|-m100000 -w24"
    echo "pass|deque|-DDEPTH=3 -DTHIEVES=1 -DLEVELS=4|$small|-m3000000 -w24"
    echo "pass|idle|-DN=3 -DSPAWNS=0 -DMAILS=2|$small|-m1000000 -w24"
    echo "pass|idle_poll|-DN=3|$small|-m1000000 -w24"
    for v in ANY_SPLIT STAYS; do
      echo "pass|deque|-DDEPTH=2 -DTHIEVES=2 -D$v|$small|-m1000000 -w22"
    done
    echo "pass|global|-DOPS=4 -DSTART=1 -DCHECKOUTS -DNOISE=0|$small|-m1000000 -w22"
    echo "pass|global|-DOPS=2 -DMIXED|$small|-m1000000 -w22"
    echo "pass|global|-DOPS=2 -DSTART=1 -DUNITS=2 -DCHECKOUTS -DBOTH_WAYS|$small|-m1000000 -w22"
    echo "pass|deque|-DDEPTH=2 -DTHIEVES=2|$small|-m1000000 -w22"
    echo "pass|events|-DFOREIGN|$small|-m1000000 -w22"
    echo "fail|events|-DN=3 -DREAD_BY_OTHERS|$small|-m1000000 -w24"
    echo "pass|free_queue||$small|-m1000000 -w22"
    echo "pass|switch|-DHOSTS=2 -DMOVES=1|$small|-m1000000 -w22"
    echo "pass|wait_list|-DROUNDS=2 -DTIMED=2|$small|-m1000000 -w22"
    echo "pass|hand_over|-DN=3|$small|-m1000000 -w24"
    echo "pass|park|-DN=3|$small|-m1000000 -w20"
    echo "pass|monitor||$small|-m1000000 -w24"
    echo "pass|group|-DWAITERS=2 -DPHASES=2|$small|-m1000000 -w24"
    echo "pass|frozen|-DROUNDS=3|$small|-m1000000 -w24"
    echo "pass|frozen|-DREADS=2 -DLOOKS=2|$small|-m1000000 -w24"
    echo "pass|move|-DCASE=5 -DABORT|$small|-m1000000 -w24"
    echo "fail|move_cache|-DOPS=3 -DSTART=1 -DWRITTEN_KEEPS_COPY|$small|-m1000000 -w22"
    echo "fail|global|-DOPS=3 -DSTART=1 -DCHECKOUTS -DWORKERS=4 -DUNITS=2 -DBOTH_WAYS -DNOISE=0 -DAM -DNO_SERVE_IN_LOCK|$small|-m1000000"
    echo "pass|move_cache|-DOPS=3 -DSTART=1|$small|-m1000000 -w24"
    echo "pass|move_cache|-DOPS=3 -DSTART=1 -DMOVES=3 -DCHECKOUTS|$small|-m1000000 -w24"
    echo "pass|move_cache|-DOPS=3 -DSTART=1 -DON0=1 -DCHECKOUTS|$small|-m1000000 -w24"
    echo "pass|move_cache|-DOPS=3 -DSTART=2 -DBLOCKS=2 -DCHECKOUTS|$small|-m1000000 -w24"
    echo "pass|move_cache|-DOPS=3 -DSTART=2 -DON0=1 -DBLOCKS=2 -DSECOND_MOVES -DCHECKOUTS|$small|-m1000000 -w24"
    for v in "-DSTART=1 -DNOISE=1" "-DSTART=1 -DNOISE=1 -DCHECKOUTS" "-DSTART=1 -DBLOCKS=2" "-DON0=1 -DBLOCKS=2 -DCHECKOUTS" "-DON0=1 -DABORT -DMOVES=3 -DCHECKOUTS"; do
      echo "pass|move_cache|-DOPS=2 $v|$small|-m1000000 -w24"
    done
  fi
  for v in 5 1 "1 -DABORT" "3 -DABORT" 3 "4 -DABORT" 4 "2 -DABORT" 2 "6 -DABORT" 6 "7 -DABORT" 7 "8 -DABORT" "9 -DABORT" 9 "10 -DABORT" 10; do
    echo "pass|move|-DCASE=$v|$small|-m1000000 -w22"
  done
  for v in 1 "2 -DABORT" "4 -DABORT" 6 "7 -DABORT" 9 "10 -DABORT"; do
    echo "pass|move|-DFORWARD -DCASE=$v|$small|-m1000000 -w22"
  done
  for v in "-DHOSTS=3 -DASKERS=1 -DOPS=2" "-DHOSTS=2 -DASKERS=1 -DMOVES=1 -DOPS=2 -DLIVES=2" "-DHOSTS=3 -DASKERS=1 -DMOVES=1 -DOPS=2 -DLIVES=2"; do
    echo "pass|switch|$v|$small|-m1000000 -w22"
  done
  for v in "-DBLOCKS=2 -DCHECKOUTS" "-DON0=1 -DCHECKOUTS" "-DABORT -DCHECKOUTS" ""; do
    echo "pass|move_cache|-DOPS=2 -DSTART=1 $v|$small|-m1000000 -w22"
  done
  echo "pass|global_map|-DFAR|$small -O2|-m1000000 -w22"
  echo "pass|global|-DOPS=3 -DSTART=1 -DCHECKOUTS|$small|-m1000000 -w22"
  echo "pass|global|-DOPS=2|$small|-m1000000 -w22"
  echo "pass|global|-DOPS=2 -DSTART=1 -DBEGUN|$small|-m1000000 -w22"
  echo "pass|global|-DOPS=3 -DSTART=1 -DCHECKOUTS -DNOISE=0 -DBEGUN|$small|-m1000000 -w22"
  echo "pass|far||$small|-m1000000"
  echo "pass|far|-DWORKERS=2 -DRING=1|$small|-m1000000"
  echo "pass|far|-DRING=1 -DSIGNAL|$small|-m1000000"
  echo "pass|far|-DAM|$small|-m1000000"
  echo "pass|far|-DRING=1 -DTIMEOUT -DNO_FENCE_POST -DNO_FENCE_SLEEP -DNO_FENCE_DONE -DNO_FENCE_WAIT|$small|-m1000000"
  echo "pass|far|-DAM -DTIMEOUT -DNO_INBOX_LOOK -DINBOX_SILENT|$small|-m1000000"
  for v in "" -DBITS_FIRST -DKEYS=3; do
    echo "pass|global_map|$v|$small|-m1000000 -w20"
  done
  echo "pass|balance||$small|-m1000000"
  echo "pass|frozen||$small|-m1000000 -w20"
  echo "pass|evict||$small|-m1000000 -w20"
  for v in -DOBJECTS=2 -DLIVES=1; do
    echo "pass|free_queue|$v|$small|-m1000000 -w20"
  done
  echo "pass|heap|-DBLOCKS=2|$small|-m1000000 -w20"
  echo "pass|lock_turn||$live|-a -f -m1000000"
  echo "pass|each_worker||$small|-m1000000 -w20"
  echo "pass|tally||$small|-m1000000 -w20"
  echo "pass|tally|-DOUTSIDER|$small|-m1000000 -w20"
  echo "pass|each_worker|-DWORKERS=6 -DFAN=3|$small|-m1000000 -w20"
  echo "pass|iso_stacks||$small|-m1000000 -w20"
  for v in "" " -DONE_WORD" " -DNOT_IN_EMPTY"; do
    echo "pass|idle_poll|-DN=2$v|$small|-m1000000 -w20"
  done
  echo "pass|idle_nodes|-DN=3 -DPER=2|$small|-m1000000 -w22"
  echo "pass|idle_nodes|-DN=2 -DLETTERS=2|$small|-m1000000 -w22"
  echo "pass|idle_nodes|-DN=3|$small -O2|-m1000000 -w22"
  echo "pass|idle_nodes|-DN=2 -DLIVE|$live|-a -f -m1000000"
  echo "pass|idle_nodes|-DN=3 -DPER=2 -DLETTERS=0 -DLIVE|$live|-a -f -m1000000"
  echo "pass|idle_poll_nodes||$small|-m1000000 -w20"
  echo "pass|idle_poll_nodes|-DLIVE|$live|-a -f -m1000000"
  for v in ANY_SPLIT STAYS; do
    echo "pass|deque|-DDEPTH=2 -DTHIEVES=1 -D$v|$small|-m1000000"
  done
  echo "pass|lazy||$small|-m100000"
  for v in SIGNAL_IN_STUB RETURN_STAYS NOT_READY WITH_GAP SPLIT_FIRST SIGNAL_BEFORE_HANDLER TELL_FIRST; do
    echo "fail|lazy|-D$v|$small|-m100000"
  done
  echo "pass|join|-DCONSUMERS=1|$small|-m100000"
  echo "pass|join|-DCONSUMERS=2|$small|-m100000"
  echo "pass|read_along||$small|-m100000"
  for m in KEEPS_COPIES MOVED_COUNTS ANY_PLACE; do
    echo "fail|read_along|-D$m|$small|-m100000"
  done
  for c in 1 2 3; do
    echo "pass|owning|-DCONSUMERS=$c|$small|-m100000"
  done
  for m in NOBODY_DROPS FREED_BEFORE_READ EACH_DROPS SHARED_LATE READER_TAKES "CONSUMERS=1 -DTAKEN_AND_DROPPED"; do
    echo "fail|owning|-D$m|$small|-m100000"
  done
  echo "pass|idle|-DN=2|$small|-m1000000"
  echo "pass|idle|-DN=2 -DMAILS=2 -DNO_TIMEOUT|$small|-m1000000"
  echo "pass|idle|-DN=2 -DLIVE|$live|-a -f -m1000000"
  for v in "" " -DBUSY" " -DBUSY -DT=5" " -DBURN" " -DFOREIGN -DBUSY" " -DFOREIGN -DBURN"; do
    echo "pass|events|-DN=2$v|$small|-m1000000 -w20"
  done
  echo "pass|wait_list|-DROUNDS=2|$small|-m1000000 -w20"
  for v in "" " -DNOTIFY_ALL" " -DALONE"; do
    echo "pass|wait_list|-DCOND$v|$small|-m1000000"
  done
  echo "pass|hand_over||$small|-m1000000"
  echo "pass|park||$small|-m1000000"
  echo "pass|cancel||$small|-m100000"
  echo "pass|cancel|-DREQUEST|$small|-m100000"
  echo "pass|doze|-DNOISE=2|$small|-m10000"
  echo "pass|monitor|-DR=1|$small|-m1000000 -w20"
  echo "pass|control||$small|-m1000000 -w20"
  echo "pass|control|-DSERVER|$small|-m10000"
  for v in "" -DWAITERS=2 -DPHASES=2; do
    echo "pass|group|$v|$small|-m1000000 -w20"
  done
  for m in NO_FENCE_OWNER NO_FENCE_THIEF NO_RECHECK TOP_NOT_RESTORED UNLOCK_BEFORE_COPY OWNER_NO_LOCK \
    SPLIT_BEFORE_BOTTOM RECORD_AFTER_SPLIT SLOT_BEFORE_SPLIT EXPOSE_AT_LEAST_ONE NO_RECORD_CLEAR \
    SUSPEND_KEEPS_RECORD CANCEL_KEEPS_SENTINEL STAYS_CLAIMED; do
    echo "fail|deque|-DDEPTH=2 -DTHIEVES=1 -D$m|$small|-m1000000"
  done
  for m in RESULT_AFTER_DONE VALUE_BEFORE_DONE COPY_AFTER_PUBLISH NEXT_AFTER_PUBLISH TOUCH_AFTER_PUBLISH \
    PUBLISH_ONCE NEXT_AFTER_PUSH CHILD_LOOKS_AGAIN RELEASE_IN_TWO_STEPS FREE_WHILE_RUNNING DETACH_WITHOUT_CAS \
    VALUE_AFTER_FREE CANCEL_KEEPS_IMAGE CANCEL_LOSES_PARENT; do
    echo "fail|join|-DCONSUMERS=2 -D$m|$small|-m100000"
  done
  for m in MAIL_NOT_COUNTED TAKE_FIRST IDLE_WITH_READY "NO_TIMEOUT -DNO_MAIL_WAKE" \
    "NO_TIMEOUT -DSHUTDOWN_WAKES_NONE" STATUS "STATUS -DLOOK_AGAIN" "STATUS -DLOOK_AGAIN -DPUT_FIRST" \
    "STATUS -DLOOK_AGAIN -DONE_STEP -DTAKE_FIRST"; do
    echo "fail|idle|-DN=2 -D$m|$small|-m1000000"
  done
  for m in ONE_WAVE NOT_FULL OWN_FIRST RESET_LATE UNCLEAN_LOST NOT_SUMMED SUM_LATE SENT_NOT_COUNTED DELIVERY_NOT_COUNTED \
    DELIVERED_FIRST COUNT_AFTER_PUSH RECEIVER_NOT_RUNNING STEAL_NOT_AWAITED ROOT_NOT_AWAITED "PER=2 -DNO_GATE" \
    "PER=2 -DLEFT_FIRST" "PER=2 -DLOCAL_NOT_COUNTED" "PER=2 -DTAKE_FIRST"; do
    echo "fail|idle_nodes|-DN=3 -D$m|$small|-m1000000"
  done
  echo "fail|idle_nodes|-DN=2 -DLIVE -DKEEPS_CHANGED|$live|-a -f -m1000000"
  for m in CONTENTS_AFTER_POSTED CONTENTS_BEFORE_LOOK REPLY_AFTER_DONE REPLY_BEFORE_LOOK FREE_BEFORE_READ NO_FENCE_POST \
    NO_FENCE_SLEEP NO_FENCE_DONE NO_FENCE_WAIT NO_LOOK_SLEEP NO_LOOK_WAIT SEEN_LATE_SLEEP SEEN_LATE_WAIT \
    SLEEP_UNANSWERED "WORKERS=2 -DLOOK_AT_FIRST" \
    "SIGNAL -DUNBLOCKED" "SIGNAL -DNO_FENCE_SLEEP" "SIGNAL -DNO_FENCE_POST" "SIGNAL -DNO_LOOK_SLEEP"; do
    echo "fail|far|-DRING=1 -D$m|$small|-m1000000"
  done
  for m in BEGIN_FIRST GOES_ON_FIRST; do
    echo "fail|far|-D$m|$small|-m1000000"
  done
  for m in NO_SERVE_IN_WAIT NO_SERVE_IN_LOCK NO_ALERT NO_INBOX_LOOK INBOX_SILENT NOT_TAKEN_OVER SHUTDOWN_IS_GONE \
    LOOK_BEFORE_GONE; do
    echo "fail|far|-DAM -D$m|$small|-m1000000"
  done
  for m in LEFT_FIRST NO_RECOUNT "LEFT_FIRST -DNO_RECOUNT -DCOUNT_LAST" NO_SCAN SCAN_OWN SCAN_FIRST NO_EPOCH \
    EPOCH_BEFORE_COUNT TAKE_FIRST LEFT_AFTER_TAKE IDLE_WITH_READY WAITER_NOT_SEEN; do
    echo "fail|idle_poll|-DN=2 -D$m|$small|-m1000000"
  done
  for m in NO_SCAN OWN_HOST SCAN_FIRST NO_EPOCH "N=3 -DLEFT_FIRST"; do
    echo "fail|idle_poll_nodes|-D$m|$small|-m1000000"
  done
  echo "fail|idle_poll_nodes|-DLIVE -DWAITER_NOT_SEEN|$live|-a -f -m1000000"
  for m in GIVER_NO_LOCK OWNER_NO_LOCK GIVER_HEAD_FIRST OWNER_HEAD_FIRST OWNER_KEEPS_HEAD UNLOCK_RELAXED \
    LINK_AFTER_UNLOCK SWEEP_TAKES_LINKED END_IS_MARK; do
    echo "fail|free_queue|-D$m|$small|-m1000000"
  done
  for m in ANY_POPS LINK_LATE COUNTS_EARLY; do
    echo "fail|heap|-DBLOCKS=2 -D$m|$small|-m1000000"
  done
  for m in SERVES_ALL SERVES_NONE; do
    echo "fail|lock_turn|-D$m|$live|-a -f -m1000000"
  done
  for m in COUNT_AS_SENT NOT_OWN TWO_STEPS READ_AFTER CALL_LAST NO_UP; do
    echo "fail|each_worker|-D$m|$small|-m1000000"
  done
  for m in COUNT_LATE NOT_TAKEN_BACK TWO_STEPS ABOVE_LATE KEEPS_WAITS "LOOK_AGAIN -DOUTSIDER" LIST_LATE DETACH_WITHOUT_CAS \
    "NUMBER_LATE -DOUTSIDER" SPAN_OVER LINK_NOT_AWAITED; do
    echo "fail|tally|-D$m|$small|-m1000000"
  done
  for m in STAMP_AFTER NO_ACQUIRE_WHEN_EMPTY; do
    echo "fail|global|-DOPS=3 -DSTART=2 -DCHECKOUTS -D$m|$small|-m1000000"
  done
  for m in FETCH_OVER_DIRTY FETCH_OVER_WRITING CLEAR_BEFORE_ACK COUNT_BEFORE_ACK \
    SKIP_LOCKED WHOLE_UNIT UNLOCKED_WHILE_AWAY NO_RELEASE NO_ACQUIRE WRITING_NOT_DIRTY; do
    echo "fail|global|-DOPS=3 -DSTART=1 -DCHECKOUTS -D$m|$small|-m1000000"
  done
  for m in EVICT_DIRTY EVICT_PINNED "WORKERS=4 -DUNITS=2 -DBOTH_WAYS -DNOISE=0 -DAM -DNO_SERVE_IN_WAIT"; do
    echo "fail|global|-DOPS=3 -DSTART=1 -DCHECKOUTS -D$m|$small|-m1000000"
  done
  for m in CHANGES_IGNORED WRITE_BACK_NOT_COUNTED BEGUN_OVER_KEPT; do
    echo "fail|global|-DOPS=3 -DSTART=1 -DCHECKOUTS -DBEGUN -D$m|$small|-m1000000"
  done
  for m in DROP_NOT_COUNTED WRITTEN_NOT_COUNTED; do
    echo "fail|global|-DOPS=3 -DSTART=1 -DBEGUN -D$m|$small|-m1000000"
  done
  for m in BEGUN_OVER_NEWER BEGUN_STAMPS_LATE; do
    echo "fail|global|-DOPS=3 -DSTART=2 -DCHECKOUTS -DBEGUN -D$m|$small|-m1000000"
  done
  for m in ATOMIC_KEEPS_COPY ATOMIC_DROPS_BEFORE ATOMIC_OVER_DIRTY PUT_KEEPS_COPY PUT_WRITES_COPY_BEFORE \
    PUT_WRITES_COPY_AFTER GET_IGNORES_DIRTY; do
    echo "fail|global|-DOPS=3 -DSTART=1 -D$m|$small|-m1000000"
  done
  for m in UNLOCK_FIRST STATE_LAST READ_LOCKED LOCK_SEEN_LATE LOOK_FIRST NO_LOOK LINK_FIRST LINK_LAST UPDATE_NOT_COUNTED \
    SLOTS_NOT_COUNTED FURTHER_NOT_COUNTED FREED_EARLY LOCK_IN_TWO COUNT_ALWAYS "FAR -DKEEPS_COPIES" \
    "FAR -DLOCK_KEEPS_COPIES"; do
    echo "fail|global_map|-D$m|$small|-m1000000"
  done
  for m in NO_TABLE TABLE_STAYS TABLE_LATE EQUAL_ONLY NEW_NUMBER FROZEN_SERVES OLD_RULE BIND_ONCE "NO_LIFE -DLIVES=2"; do
    echo "fail|switch|-DHOSTS=2 -DASKERS=1 -DOPS=2 -D$m|$small|-m1000000"
  done
  echo "fail|switch|-DHOSTS=3 -DASKERS=1 -DOPS=2 -DMOVES=1 -DLIVES=2 -DLIFE_AT_REUSE|$small|-m1000000 -w22"
  for m in "1 -DNEAR_WITHOUT_USE" "6 -DCLOSING_REFUSES_NESTED" "3 -DLOCK_WHILE_WAITING" "1 -DFREEZE_BEFORE_DRAIN" "10 -DUNREGISTERED_CLOSES" \
    "1 -DABORT -DABORT_FORGETS" "1 -DABORT -DABORT_KEEPS_CLOSED" "2 -DARRIVE_AT_ONCE" "3 -DARRIVAL_WITHOUT_LOCK" \
    "1 -DOWNED_BEFORE_DATA" "1 -DLEFT_BEFORE_DATA" "7 -DTWO_PULLERS" "4 -DNO_VERSION" "1 -DHOME_NOT_TOLD" "10 -DNEVER_ASKS_HOME" \
    "4 -DLOCAL_BEFORE_PLACE" 8 "10 -DFORWARD -DSENT_ON_FOR_EVER" "10 -DFORWARD -DSENT_ON_PAST_HOME" "1 -DFORWARD -DSENT_ON_AND_DONE"; do
    echo "fail|move|-DCASE=$m|$small|-m1000000 -w20"
  done
  for m in ARRIVAL_OVER_DIRTY ARRIVAL_OVER_OPEN ARRIVAL_WITHOUT_LOCK ABSENT_WITHOUT_LOCK LEFT_DISCARDS_DIRTY LEFT_DISCARDS_OPEN \
    LEFT_WITHOUT_LOCK LEFT_KEEPS_EPOCH ELSEWHERE_FIRST WRITE_BACK_LOST ARRIVING_CLEARS FROZEN_CLEARS LOCK_WHILE_WAITING \
    LOOK_BEFORE_LOCK FILL_LOCKS_WHILE_WAITING NEAR_WITHOUT_USE FREEZE_BEFORE_DRAIN "NOISE=1 -DDISCARD_WITHOUT_LOCK"; do
    echo "fail|move_cache|-DOPS=2 -DSTART=1 -DCHECKOUTS -D$m|$small|-m1000000 -w20"
  done
  echo "fail|move_cache|-DOPS=3 -DSTART=2 -DON0=1 -DBLOCKS=2 -DSECOND_MOVES -DCHECKOUTS -DFILL_SKIPS_FROZEN|$small|-m1000000 -w20"
  echo "fail|move_cache|-DOPS=2 -DSTART=1 -DWRITTEN_KEEPS_DIRTY|$small|-m1000000 -w20"
  for m in HOP_KEEPS_COPIES LINK_FIRST; do
    echo "fail|global_map|-DFAR -D$m|$small|-m1000000"
  done
  for m in COPY_NOT_AWAITED LEFT_IS_FREE MARK_FIRST MARKS_KEPT CLEARED_TOGETHER LIST_AND_MARK; do
    echo "fail|iso_stacks|-D$m|$small|-m1000000"
  done
  for m in PUBLISH_FIRST TOUCHED_LATER PUBLISH_BLIND END_IN_TWO END_UNSEEN NOT_COUNTED COUNT_LATE UNPARK_WHILE_IDLE FOREIGN_PUSH \
    CANCEL_COUNTED TIMER_NOT_AWAITED DONE_FIRST LEAVE_UNLOCKED NOT_LEFT TOUCHED_AFTER; do
    echo "fail|park|-D$m|$small|-m1000000"
  done
  for m in TOLD_FIRST POLL_FIRST ASKED_FIRST NOT_AGAIN ARRIVES_UNSEEN; do
    echo "fail|cancel|-DREQUEST -D$m|$small|-m100000"
  done
  for m in COUNT_AFTER_UNLOCK COUNT_AFTER_PUBLISH NOT_TAKEN_BACK OWNER_NOT_COUNTED CHILD_NOT_COUNTED STAND_IN_FREED_EARLY; do
    echo "fail|cancel|-D$m|$small|-m100000"
  done
  for m in HASTENED_FIRST SEEN_LATE NOT_COMPARED NOT_COUNTED; do
    echo "fail|doze|-D$m|$small|-m10000"
  done
  for m in WATCH_LATE ASLEEP_LATE NO_CALL WAKE_FIRST SEEN_LATE SHUTDOWN_NOT_TOLD REST_WITH_READY REST_WITH_EVENT NOT_COUNTED NO_MONITOR; do
    echo "fail|monitor|-DR=1 -D$m|$small|-m1000000"
  done
  echo "fail|monitor|-DEVENTS=1 -DNOT_PASSED_ON|$small|-m1000000 -w20"
  for m in FREE_WITHOUT_LOCK LOOK_WITHOUT_LOCK LIVE_BEFORE_LOCK UNLOCK_BEFORE_BYTES KEEPS_LOCK; do
    echo "fail|balance|-D$m|$small|-m1000000"
  done
  for m in THAWS_AFTER_LOOKING LOOK_AFTER_ASKING THAWS_FIRST GENERATION_FIRST NO_GENERATION NOT_COUNTED FLAG_WITHOUT_GENERATION; do
    echo "fail|frozen|-D$m|$small|-m1000000 -w20"
  done
  for m in NOT_COUNTED COUNTED_LATE NOT_AWAITED NOT_ALL NO_GENERATION GENERATION_LATE UNCOUNTED_EARLY STATE_FIRST STATE_STAYS NO_LOCK REUSE_UNSEEN REUSE_NOT_AWAITED; do
    echo "fail|evict|-D$m|$small|-m1000000 -w20"
  done
  for m in OPEN_FIRST SAVED_LATE NO_LOCK THIEF_NO_LOCK TWO_LOCKS COUNT_FIRST COUNT_MORE TAIL_KEPT HEAD_AFTER_UNLOCK TAKE_NO_LOCK TAKE_BLIND OUT_LATE \
    MIDDLE_KEEPS_TAIL; do
    echo "fail|hand_over|-D$m|$small|-m1000000"
  done
  for m in OPEN_FIRST NEXT_AFTER_UNPARK EXPIRE_ANYWAY EXPIRED_OVER_NOTIFIED EXPIRED_STAYS TIMER_NOT_STOPPED TIMER_IN_LIST_LOCK \
    FAST_WITH_LOCK UNLOCK_FAST_WITH_LOCK UNLOCK_IN_TWO TOUCHED_LATER NOT_MARKED MARK_LOST HANDED_OPEN HANDED_NOT_SEEN; do
    echo "fail|wait_list|-DROUNDS=2 -D$m|$small|-m1000000"
  done
  for m in TEST_FIRST LISTED_LATE TAKEN_LATE KEEPS_LIST FULL_CHANGES "WAITERS=4 -DGROWS_BACK" "SERVER -DSERVER_WAITS"; do
    echo "fail|control|-D$m|$small|-m1000000"
  done
  for m in STAYS_LATE REGISTER_LATE IGNORES_WAITING NOT_OWNER UNREGISTER_FIRST LOOK_AGAIN ANNOUNCE_LATE NO_VISIT VISIT_EMPTY \
    "WAITERS=2 -DPHASES=2 -DWAITS_ONCE"; do
    echo "fail|group|-D$m|$small|-m1000000"
  done
  for v in DEPTH=2 MERGES; do
    echo "pass|segments|-D$v|$small|-m1000000"
  done
  for m in INSERT_UNLOCKED PART_LATE PART_UNLOCKED "MERGES -DASKS_UNLOCKED" "MERGES -DMARK_LATE"; do
    echo "fail|segments|-D$m|$small|-m1000000"
  done
  for m in NO_STATE_LOOK CHAIN_ALL LIST_AFTER_UNLOCK NO_USERS USERS_BEFORE_TIMER "ALONE -DEARLY_NOT_SEEN"; do
    echo "fail|wait_list|-DCOND -D$m|$small|-m1000000"
  done
  for m in NOT_COUNTED DELIVER_IDLE COLLECT_BOTH COLLECTED_EARLY NOBODY_WATCHES SHUTDOWN_NO_INTERRUPT "BUSY -DNOT_RESET" \
    "BUSY -DPUSH_WAKES_NONE" "BUSY -DNO_INTERRUPT" "BUSY -DWAKE_NOT_SEEN" "BUSY -DPOLLING_LATE" "BURN -DRESET_FIRST" \
    "BURN -DFIRST_WAKES_NONE" "BURN -DNO_T1" "BURN -DT1_LATE" "FOREIGN -DBUSY -DPUT_LATE"; do
    echo "fail|events|-DN=2 -D$m|$small|-m1000000"
  done
}

full=0
[ "${1:-}" = --full ] && { full=1; shift; }
GODWIT_MODEL_DIR=$(mktemp -d) || exit 1
export GODWIT_MODEL_DIR
trap 'rm -rf "$GODWIT_MODEL_DIR"' EXIT
runs | grep -F -- "${1:-}" | tr '\n' '\0' | xargs -0 -n 1 -P 2 bash "$here/check.sh" --run
status=$?
[ $status = 0 ] && echo "models: all as expected" || { echo "models: NOT as expected"; exit 1; }
