// A type of your own that goes between hosts: its codec says how it is written and read.
//
//   example_codec --godwit-workers=4
//   mpirun -n 2 example_codec
//
// On one host values are moved. To another host only bytes go: a type that owns memory needs a codec there.
// docs/writing-programs.md#what-may-be-a-thread-an-argument-a-result
#include <godwit/godwit.hpp>

#include <iostream>
#include <string>
#include <utility>
#include <vector>

namespace gw = godwit;

/// A polynomial with a name. Neither plain bytes nor a type that the library knows.
class polynomial {
 public:
  polynomial(std::string name, std::vector<long> coefficients)
      : name_(std::move(name)), coefficients_(std::move(coefficients)) {}

  friend polynomial operator*(const polynomial& a, const polynomial& b) {
    std::vector<long> c(a.coefficients_.size() + b.coefficients_.size() - 1);
    for (std::size_t i = 0; i < a.coefficients_.size(); ++i)
      for (std::size_t k = 0; k < b.coefficients_.size(); ++k)
        c[i + k] += a.coefficients_[i] * b.coefficients_[k];
    return {a.name_ + b.name_, std::move(c)};
  }
  const std::string& name() const { return name_; }
  const std::vector<long>& coefficients() const { return coefficients_; }

 private:
  std::string name_;
  std::vector<long> coefficients_;
};

template <>
struct godwit::codec<polynomial> {
  static void write(godwit::writer& w, const polynomial& p) {
    w.put(p.name());
    w.put(p.coefficients());
  }
  static polynomial read(godwit::reader& r) {
    auto name = r.get<std::string>();
    return {std::move(name), r.get<std::vector<long>>()};
  }
};

/// (1 + x) to the power n: the products are results, so they may be made on one host and used on another.
polynomial power(int n) {
  if (n == 1) return {"x", {1, 1}};
  auto half = gw::spawn(power, n / 2);
  return power(n - n / 2) * half.join();
}

int main(int argc, char** argv) {
  return gw::run(argc, argv, [] {
    const polynomial p = power(20);
    std::cout << p.name() << ": the largest coefficient is " << p.coefficients()[10] << '\n';
  });
}
