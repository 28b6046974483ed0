# Shared by scripts/setup, scripts/run and scripts/test: messages, the compilers to use, a new enough cmake.
# To be sourced. Nothing is exported under GODWIT_*: the library takes such variables for its own.

# SCRIPT --help: the comment at its head.
case ${1:-} in -h | --help) sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0"; exit 0 ;; esac

set -euo pipefail
exec </dev/null
export LC_ALL=C DEBIAN_FRONTEND=noninteractive
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"
tools=$root/build/tools          # what scripts/setup had to install by itself
PATH=$tools/cmake/bin:$PATH
cores=$(nproc)

say() { printf '%s: %s\n' "$(basename "$0")" "$*"; }
die() { say "$*" >&2; exit 1; }
have() { command -v "$1" >/dev/null 2>&1; }

# at_least WANTED FOUND: compares versions.
at_least() { [ "$(printf '%s\n%s\n' "$1" "$2" | sort -V | head -n 1)" = "$1" ]; }

# What makes pages of documents (scripts/site), from PyPI.
install_site_tools() {
  [ -x "$tools/site/bin/mkdocs" ] && return
  say "installing mkdocs-material from PyPI into $tools/site"
  python3 -m venv "$tools/site" && "$tools/site/bin/pip" install -q 'mkdocs>=1.6,<2' 'mkdocs-material>=9.5,<10' && return
  rm -rf "$tools/site"
  return 1
}

cmake_version() { cmake --version 2>/dev/null | sed -n '1s/[^0-9]*//p'; }
good_cmake() { have cmake && at_least 3.25 "$(cmake_version)"; }

# new_gcc PREFIX: PREFIXg++ if it is new enough, else the newest PREFIXg++-N that is. Empty: none.
new_gcc() {
  local name
  for name in "$1g++" "$1g++-15" "$1g++-14" "$1g++-13" "$1g++-12"; do
    if have "$name" && at_least 12 "$("$name" -dumpversion)"; then
      echo "$name"
      return
    fi
  done
}
new_clang() {
  local name
  for name in clang++ clang++-20 clang++-19 clang++-18 clang++-17 clang++-16 clang++-15 clang++-14; do
    if have "$name" && at_least 14 "$("$name" -dumpversion)"; then
      echo "$name"
      return
    fi
  done
}

# compiler_settings PRESET: the -D options by which a preset gets a compiler that is not named g++ or clang++.
compiler_settings() {
  local cxx=
  case $1 in
    aarch64 | riscv64 | sparc64) cxx=$(new_gcc "$1-linux-gnu-") ;;
    *clang*) cxx=$(new_clang) ;;
    *) cxx=$(new_gcc "") ;;
  esac
  case $cxx in
    *-linux-gnu-g++ | g++ | clang++ | "") ;;
    *clang++*) echo "-DCMAKE_CXX_COMPILER=$cxx -DCMAKE_C_COMPILER=${cxx/clang++/clang}" ;;
    *) echo "-DCMAKE_CXX_COMPILER=$cxx -DCMAKE_C_COMPILER=${cxx/g++/gcc}" ;;
  esac
}
