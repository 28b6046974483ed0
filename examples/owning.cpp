// Values that own memory: vectors, strings and shared pointers as arguments, locals and results.
//
//   example_owning --godwit-workers=4
//
// The workers of a host have one heap, so a thread takes its vectors with it wherever it goes, and whoever
// has a value last frees it. docs/heap.md
#include <godwit/godwit.hpp>

#include <iostream>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace gw = godwit;

struct node {
  std::string text;
  std::shared_ptr<const node> left, right;
};

/// A balanced tree of the words, which are moved into it.
std::shared_ptr<const node> build(std::vector<std::string> words) {
  if (words.empty()) return nullptr;
  const auto middle = words.begin() + static_cast<std::ptrdiff_t>(words.size() / 2);
  std::vector<std::string> after(std::make_move_iterator(middle + 1), std::make_move_iterator(words.end()));
  std::string text = std::move(*middle);  // a local that owns, across a spawn and a join
  words.erase(middle, words.end());
  auto left = gw::spawn(build, std::move(words));
  auto right = build(std::move(after));
  return std::make_shared<const node>(node{std::move(text), left.join(), std::move(right)});
}

std::string longest(const std::shared_ptr<const node>& tree) {
  if (tree == nullptr) return "";
  auto [a, b] = gw::invoke([t = tree->left] { return longest(t); }, [t = tree->right] { return longest(t); });
  std::string best = tree->text;
  for (std::string* other : {&a, &b})
    if (other->size() > best.size()) best = std::move(*other);
  return best;
}

int main(int argc, char** argv) {
  return gw::run(argc, argv, [] {
    std::vector<std::string> words;
    for (int i = 0; i < 2000; ++i)
      words.push_back("word " + std::string(static_cast<std::size_t>(i * 7 % 61), '.'));
    words[1234] = "the longest word of all, which has more letters than sixty-six of them";
    const auto tree = build(std::move(words));
    const std::string found = longest(tree);
    std::cout << found << "; " << tree.use_count() << " owner of the tree is left\n";
  });
}
