// Datasets that group elements by a key.
#include <map>

#include "kernels/data/dataset_function.h"
#include "kernels/data/window_datasets.h"

namespace leat {
namespace {

using Key = int64_t;

class GroupByWindowDataset final : public ElementSource {
 public:
  struct Functions {
    DatasetFunction key, reduce, window_size;
  };
  GroupByWindowDataset(ElementTypes types, Pointer input, Functions functions)
      : ElementSource(std::move(types), {input}),
        input_(std::move(input)),
        functions_(std::move(functions)) {}

  int64_t cardinality() const override {
    return input_->cardinality() == infinite ? infinite : unknown;
  }
  std::unique_ptr<DatasetIterator> iterate() const override {
    return std::make_unique<Iterator>(*this);
  }

 private:
  struct Group {
    int64_t window_size = 0;  // 0: not yet requested
    std::vector<Element> elements;
  };

  class Iterator final : public DatasetIterator {
   public:
    explicit Iterator(const GroupByWindowDataset& dataset)
        : dataset_(dataset), input_(dataset_.input_->make_iterator()) {}

    std::optional<Element> advance(Reading& reading) override {
      for (;;) {
        if (reduced_) {
          std::optional<Element> out = reduced_->next(reading);
          if (out) return out;
          reduced_.reset();
        }
        const std::optional<Key> key = input_ ? read_group(reading) : smallest_key();
        if (!key) return {};
        reduce(*key, reading);
      }
    }

   private:
    // The key of the next group that is full; at the end, of the first that has elements.
    std::optional<Key> read_group(Reading& reading) {
      for (;;) {
        std::optional<Element> element = input_->next(reading);
        if (!element) {
          input_.reset();
          return smallest_key();
        }
        const auto key =
            dataset_.functions_.key.call_for_scalar<int64_t>(*element, "key_func", reading);
        Group& group = groups_[key];
        if (group.window_size == 0) group.window_size = window_size(key, reading);
        check_memory_for_element(*element);
        group.elements.push_back(std::move(*element));
        if (static_cast<int64_t>(group.elements.size()) == group.window_size) return key;
      }
    }
    int64_t window_size(Key key, Reading& reading) const {
      const auto size = dataset_.functions_.window_size.call_for_scalar<int64_t>(
          {Tensor::scalar(key)}, "window_size_func", reading);
      check(size > 0, "Window size must be greater than zero, but got ", size, ".");
      return size;
    }
    std::optional<Key> smallest_key() const {
      for (const auto& [key, group] : groups_) {
        if (!group.elements.empty()) return key;
      }
      return {};
    }
    void reduce(Key key, Reading& reading) {
      std::vector<Element> elements = std::move(groups_[key].elements);
      groups_[key].elements.clear();
      const Tensor window = window_tensor(std::move(elements), dataset_.input_->types());
      reduced_ =
          dataset_.functions_.reduce.call_for_dataset({Tensor::scalar(key), window}, reading)
              ->make_iterator();
    }

    const GroupByWindowDataset& dataset_;
    std::unique_ptr<DatasetIterator> input_;  // null at its end
    std::unique_ptr<DatasetIterator> reduced_;
    std::map<Key, Group> groups_;
  };

  const Pointer input_;
  const Functions functions_;
};

class GroupByReducerDataset final : public ElementSource {
 public:
  struct Functions {
    DatasetFunction key, init, reduce, finalize;
  };
  GroupByReducerDataset(ElementTypes types, Pointer input, Functions functions)
      : ElementSource(std::move(types), {input}),
        input_(std::move(input)),
        functions_(std::move(functions)) {}

  std::unique_ptr<DatasetIterator> iterate() const override {
    struct State {
      std::unique_ptr<DatasetIterator> input;  // null at its end
      std::map<Key, Element> states;
    };
    return iterator([this, s = State{input_->make_iterator(), {}}](Reading& reading) mutable {
      while (s.input) {
        const std::optional<Element> element = s.input->next(reading);
        if (element) {
          reduce(*element, s.states, reading);
        } else {
          s.input.reset();
        }
      }
      std::optional<Element> out;
      if (s.states.empty()) return out;
      const auto first = s.states.extract(s.states.begin());
      out = functions_.finalize.call(first.mapped(), reading);
      return out;
    });
  }

 private:
  void reduce(const Element& element, std::map<Key, Element>& states, Reading& reading) const {
    const auto key = functions_.key.call_for_scalar<int64_t>(element, "key_func", reading);
    auto state = states.find(key);
    if (state == states.end()) {
      Element initial = functions_.init.call({Tensor::scalar(key)}, reading);
      check_memory_for_element(initial);
      state = states.emplace(key, std::move(initial)).first;
    }
    state->second = functions_.reduce.call(joined(state->second, element), reading);
  }

  const Pointer input_;
  const Functions functions_;
};

// ---- Ops ----

// "key" → "key_func_other_arguments: Tkey_func_other_arguments", and so on.
std::vector<std::string> inputs_for(std::initializer_list<const char*> functions) {
  std::vector<std::string> out = {input_dataset_arg};
  for (const std::string f : functions)
    out.push_back(concat(f, "_func_other_arguments: T", f, "_func_other_arguments"));
  return out;
}
std::vector<std::string> attrs_for(std::initializer_list<const char*> functions) {
  std::vector<std::string> out;
  for (const std::string f : functions) {
    out.push_back(f + "_func: func");
    out.push_back(concat("T", f, "_func_other_arguments: list(type) >= 0"));
  }
  return dataset_attrs(std::move(out));
}

OpDef group_by_window_op() {
  auto attrs = attrs_for({"key", "reduce", "window_size"});
  attrs.push_back(metadata_attr);
  return dataset_op({.name = "GroupByWindowDataset",
                     .doc = "The elements of reduce_func(key, window) for each window, a dataset "
                            "of window_size_func(key) elements with the same key_func; at the end, "
                            "windows may be smaller.",
                     .inputs = inputs_for({"key", "reduce", "window_size"}),
                     .attrs = std::move(attrs)},
                    [](ExecuteContext& c) {
                      return std::make_shared<GroupByWindowDataset>(
                          ElementTypes::of(c.node()), input_dataset(c),
                          GroupByWindowDataset::Functions{DatasetFunction(c, "key_func"),
                                                          DatasetFunction(c, "reduce_func"),
                                                          DatasetFunction(c, "window_size_func")});
                    });
}
OpDef group_by_reducer_op(const char* name) {
  return dataset_op(
      {.name = name,
       .doc = "finalize_func(state) for each key_func(element), in order, where state = "
              "init_func(key), then reduce_func(state, each element of that key).",
       .inputs = inputs_for({"key", "init", "reduce", "finalize"}),
       .attrs = attrs_for({"key", "init", "reduce", "finalize"}),
       .is_stateful = true},
      [](ExecuteContext& c) {
        return std::make_shared<GroupByReducerDataset>(
            ElementTypes::of(c.node()), input_dataset(c),
            GroupByReducerDataset::Functions{
                DatasetFunction(c, "key_func"), DatasetFunction(c, "init_func"),
                DatasetFunction(c, "reduce_func"), DatasetFunction(c, "finalize_func")});
      });
}
const Op group_by_window{group_by_window_op()};
const Op group_by_reducer{group_by_reducer_op("GroupByReducerDataset")};
// The name that TensorFlow 2's client still uses.
const Op experimental_group_by_reducer{group_by_reducer_op("ExperimentalGroupByReducerDataset")};

}  // namespace
}  // namespace leat
