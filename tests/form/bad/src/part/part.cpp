#include "part.hpp"

int main() {
  part::words w{};  
  return part::called(w) + part::only_declared(1);
}
