// Datasets whose elements, or groups of elements, are datasets themselves: windows.
#include "kernels/data/window_datasets.h"

#include <deque>

namespace leat {
namespace {

class Window final : public ElementSource {
 public:
  Window(ElementTypes types, std::vector<Element> elements)
      : ElementSource(std::move(types)), elements_(std::move(elements)) {}

  int64_t cardinality() const override { return static_cast<int64_t>(elements_.size()); }
  std::unique_ptr<DatasetIterator> iterate() const override {
    return iterator([this, at = size_t{0}](Reading&) mutable {
      std::optional<Element> out;
      if (at < elements_.size()) out = elements_[at++];
      return out;
    });
  }

 private:
  const std::vector<Element> elements_;
};

struct WindowSizes {
  int64_t size, shift, stride;
  bool drops_remainder;
  // Elements from the first of a window to its last. INVALID_ARGUMENT if there is no such window.
  int64_t span() const {
    check(size > 0, "Window size must be greater than zero.");
    check(shift > 0, "Window shift must be greater than zero.");
    check(stride > 0, "Window stride must be greater than zero.");
    int64_t out = 0;
    check(!__builtin_mul_overflow(size - 1, stride, &out) && out < INT64_MAX,
          "Window target buffer size overflow: (window_size=", size,
          " - 1) * window_stride=", stride, " + 1 is not representable.");
    return out + 1;
  }
};

class WindowDataset final : public ElementSource {
 public:
  WindowDataset(Pointer input, const WindowSizes& sizes)
      : ElementSource(types_of(*input), {input}),
        input_(std::move(input)),
        sizes_(sizes),
        span_(sizes.span()) {}

  int64_t cardinality() const override {
    const int64_t n = input_->cardinality();
    if (n < 0 || !sizes_.drops_remainder) return batches(n, sizes_.shift);
    return n < span_ ? 0 : (n - span_) / sizes_.shift + 1;
  }

  std::unique_ptr<DatasetIterator> iterate() const override {
    return std::make_unique<Iterator>(*this);
  }

 private:
  static ElementTypes types_of(const ElementSource& input) {
    const size_t components = input.types().dtypes.size();
    return {std::vector<DType>(components, DType::variant), std::vector<Shape>(components)};
  }

  // An element that failed keeps its place: the windows that would contain it fail.
  struct Place {
    Element element;
    Status status;
  };

  class Iterator final : public DatasetIterator {
   public:
    explicit Iterator(const WindowDataset& dataset)
        : dataset_(dataset), input_(dataset_.input_->make_iterator()) {}

    std::optional<Element> advance(Reading& reading) override {
      fill(reading);
      const bool is_whole = static_cast<int64_t>(places_.size()) == dataset_.span_;
      if (places_.empty() || (dataset_.sizes_.drops_remainder && !is_whole)) return {};
      std::vector<Element> elements;
      Status status;
      for (size_t i = 0; i < places_.size() && status.is_ok(); i += step()) {
        status = places_[i].status;
        elements.push_back(places_[i].element);
      }
      shift(reading);
      throw_if_error(status);
      return dataset_.windows_of(elements);
    }

   private:
    size_t step() const { return static_cast<size_t>(dataset_.sizes_.stride); }
    void fill(Reading& reading) {
      while (input_ && static_cast<int64_t>(places_.size()) < dataset_.span_) read(reading, true);
    }
    void shift(Reading& reading) {
      const int64_t count = dataset_.sizes_.shift, here = static_cast<int64_t>(places_.size());
      places_.erase(places_.begin(), places_.begin() + std::min(count, here));
      for (int64_t i = here; input_ && i < count; ++i) read(reading, false);
    }
    void read(Reading& reading, bool is_kept) {
      Place place;
      try {
        std::optional<Element> element = input_->next(reading);
        if (!element) return input_.reset();
        if (is_kept) check_memory_for_element(*element);
        place.element = std::move(*element);
      } catch (...) {
        reading.check_goes_on();
        place.status = status_of_current_exception();
      }
      if (is_kept) places_.push_back(std::move(place));
    }

    const WindowDataset& dataset_;
    std::unique_ptr<DatasetIterator> input_;  // null at its end
    std::deque<Place> places_;
  };

  // A window for each component.
  Element windows_of(const std::vector<Element>& elements) const {
    Element out;
    for (size_t i = 0; i < types().dtypes.size(); ++i) {
      std::vector<Element> components;
      for (const Element& element : elements) {
        check(element.size() == types().dtypes.size(), "an element has ", element.size(),
              " components, not ", types().dtypes.size());
        components.push_back({element[i]});
      }
      const ElementTypes& of = input_->types();
      out.push_back(window_tensor(std::move(components), {{of.dtypes[i]}, {of.shapes[i]}}));
    }
    return out;
  }

  const Pointer input_;
  const WindowSizes sizes_;
  const int64_t span_;
};

const Op window_op{
    dataset_op({.name = "WindowDataset",
                .doc = "A dataset for each component of `size` elements, each `stride` after the "
                       "previous one; the next begins `shift` elements later.",
                .inputs = {input_dataset_arg, "size: int64", "shift: int64", "stride: int64",
                           "drop_remainder: bool"},
                .attrs = dataset_attrs({metadata_attr})},
               [](ExecuteContext& c) {
                 return std::make_shared<WindowDataset>(
                     input_dataset(c),
                     WindowSizes{.size = scalar_input<int64_t>(c, 1, "size"),
                                 .shift = scalar_input<int64_t>(c, 2, "shift"),
                                 .stride = scalar_input<int64_t>(c, 3, "stride"),
                                 .drops_remainder = scalar_input<bool>(c, 4, "drop_remainder")});
               })};

}  // namespace

ElementSource::Pointer window_of(std::vector<Element> elements, ElementTypes types) {
  return std::make_shared<Window>(std::move(types), std::move(elements));
}

Tensor window_tensor(std::vector<Element> elements, ElementTypes types) {
  int depth = 1;
  for (const Element& element : elements) depth = std::max(depth, depth_around(element));
  return dataset_tensor(window_of(std::move(elements), std::move(types)), depth);
}

}  // namespace leat
