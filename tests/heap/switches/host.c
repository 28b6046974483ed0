/* host LIBRARY ARGUMENT...: loads the library, which has program.cpp in it, and calls it as its main. */
#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char** argv) {
  void* const library = argc > 1 ? dlopen(argv[1], RTLD_NOW) : NULL;
  void* const function = library != NULL ? dlsym(library, "switches") : NULL;
  if (function == NULL) {
    fprintf(stderr, "host: %s\n", argc > 1 ? dlerror() : "which library?");
    return 2;
  }
  return ((int (*)(int, char**))function)(argc - 1, argv + 1);
}
