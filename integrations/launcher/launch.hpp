// Running a program with libraries preloaded: what godwit-pthread and godwit-openmp are.
#pragma once

#include <string>
#include <vector>

struct preloading {
  const char* name;                    ///< of the launcher, in messages
  const char* help;                    ///< without the first line
  std::vector<std::string> libraries;  ///< file names, in the order of search
};

/// main of the launcher: becomes the program of argv[1], or ends with a message and a status if that cannot
/// work.
int launch(const preloading& what, int argc, char** argv);
