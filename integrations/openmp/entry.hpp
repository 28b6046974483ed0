// The names that compiled programs call. All of them are in exports.txt; none throws.
#pragma once

#define OPENMP_ENTRY extern "C" __attribute__((visibility("default")))
