#!/usr/bin/env bash
# Every name of libgomp is one of ours, or one that libgomp answers rightly beside us: names.sh LIBRARY
# (Others would find libgomp's own threads, of which there are none.)
left='^(GOMP_PLUGIN_.*|GOMP_offload_(un)?register(_ver)?|GOMP_(alloc|free|error|warning)'
left+='|omp_(aligned_|re)?(alloc|calloc)|omp_calloc|omp_free|omp_(init|destroy)_allocator(_8)?|omp_[gs]et_default_allocator'
left+='|omp_[gs]et_default_device(_8)?|omp_get_(initial_device|num_devices|device_num)|omp_is_initial_device|omp_target_.*'
left+='|omp_get_wti(me|ck)|omp_display_env(_8)?)_?$'
names() { nm -D --defined-only "$1" | awk '$2 != "A" { print $3 }' | sed 's/@.*//' | grep -E '^(GOMP|GOACC|omp)_' | sort -u; }
theirs=$(gcc -print-file-name=libgomp.so.1)
[ -r "$theirs" ] || { echo "skipped: gcc has no libgomp.so.1 (scripts/setup)"; exit 77; }
missing=$(comm -23 <(names "$theirs" | grep -vE "$left") <(names "$1"))
unknown=$(comm -13 <(names "$theirs") <(names "$1"))
count=$(names "$1" | wc -l)
[ -n "$missing" ] && echo "not in $1, and not known to be right in libgomp:" $missing
[ -n "$unknown" ] && echo "only in $1 (misspelt?):" $unknown
echo "$count names"
[ -z "$missing$unknown" ] && [ "$count" -gt 200 ]
