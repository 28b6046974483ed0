// expect: an exception type must be trivially copyable, have a godwit::codec, or be constructible
// register_exception wants to build the exception anew elsewhere.
#include <godwit/godwit.hpp>

struct failure {
  std::vector<std::string*> log;
  failure(int, std::ostream*);
  failure(const failure&);
  ~failure();
};

int main() { godwit::register_exception<failure>(); }
