// expect: no hash for this key: specialise std::hash
// Bytes that are padding differ between equal keys.
#include <godwit/godwit.hpp>

struct padded {
  char a;
  int b;
  bool operator==(const padded&) const = default;
};
void use() {
  godwit::global_map<padded, int> m(10);
  m.contains({});
}
