// leat: fast-math-loops
// Max pooling and its gradients.
#include <limits>

#include "kernels/neural/pooling.h"
#include "kernels/neural/pooling_loops.h"

namespace leat {
namespace {

template <class T>
constexpr T lowest() {
  if constexpr (std::is_integral_v<T>) {
    return std::numeric_limits<T>::lowest();
  } else {
    return T(std::numeric_limits<float>::lowest());
  }
}

// The largest values of count * lanes channels.
template <int count, class Taps, class T>
LEAT_INLINE inline void pool_lanes(const Pool& p, const Taps& taps, int64_t row, int64_t ox,
                                   const T* x, T* to) {
  Lanes best[count];
  for (Lanes& b : best) b = Lanes{} + float(lowest<T>());
  taps.for_each_tap(row, ox, [&](int64_t pixel) LEAT_INLINE {
    for (int i = 0; i < count; ++i) {
      Lanes value;
      load_lanes(x + pixel * p.channels + i * lanes, value);
      best[i] = best[i] < value ? value : best[i];
    }
  });
  for (int i = 0; i < count; ++i) store_lanes(to + i * lanes, best[i]);
}

template <class Taps, class T>
LEAT_INLINE inline void largest_of_rows(const Pool& p, const Taps& taps, int64_t begin, int64_t end,
                                        const T* x, T* y) {
  using C = ComputeType<T>;
  for_each_pixel(p, begin, end, [&](int64_t row, int64_t ox) LEAT_INLINE {
    T* to = y + (row * p.width.out + ox) * p.channels;
    int64_t done = 0;
    if constexpr (has_lanes<T>) {
      done = for_channel_lanes<4>(p.channels, [&](auto count, int64_t first) LEAT_INLINE {
        pool_lanes<count>(p, taps, row, ox, x + first, to + first);
      });
    }
    const auto pool_block = [&](int64_t first, int64_t n) LEAT_INLINE {
      C best[channel_block];
      C* const largest = best;
      for (int64_t c = 0; c < n; ++c) largest[c] = lowest<T>();
      taps.for_each_tap(row, ox, [&](int64_t pixel) LEAT_INLINE {
        const T* from = x + pixel * p.channels + first;
        for (int64_t c = 0; c < n; ++c) {
          const C value = from[c];
          largest[c] = largest[c] < value ? value : largest[c];
        }
      });
      for (int64_t c = 0; c < n; ++c) to[first + c] = T(largest[c]);
    };
    for_channel_blocks(p.channels, pool_block, done);
  });
}

constexpr auto prepare_max = []<class T>(TypeTag<T>, const KernelRequest& r) -> BoundKernel {
  const Pool p = pool_of(r.node, r.inputs[0].shape);
  if (p.y_elements() == 0) return {};
  return bound_kernel(cost_ns(p), [p](const Arguments& a) {
    const T* x = a.input<T>(0);
    T* y = a.output<T>();
    const auto pool_rows = [=](int64_t begin, int64_t end) {
      with_taps_of(p, [=](const auto& taps) {
        run_loop<T>([=]() LEAT_INLINE { largest_of_rows(p, taps, begin, end, x, y); });
      });
    };
    a.stream->parallel_for(p.rows(), grain(p, p.width.out * p.channels), pool_rows);
  });
};

// Calls f(output element, input element) for every output of the images [begin, end): its largest
// input, the first of equal ones.
template <class T, class F>
LEAT_INLINE inline void for_each_largest(const Pool& p, const T* x, int64_t begin, int64_t end,
                                         F f) {
  using C = ComputeType<T>;
  constexpr int64_t width = 64;
  C best[width];
  int64_t where[width];
  for (int64_t row = begin * p.rows_per_image(); row < end * p.rows_per_image(); ++row) {
    for (int64_t ox = 0; ox < p.width.out; ++ox) {
      const int64_t y = (row * p.width.out + ox) * p.channels;
      for (int64_t first = 0; first < p.channels; first += width) {
        const int64_t n = std::min(width, p.channels - first);
        std::fill_n(where, n, int64_t{-1});
        p.for_each_tap(row, ox, [&](int64_t pixel) LEAT_INLINE {
          const int64_t at = pixel * p.channels + first;
          for (int64_t c = 0; c < n; ++c) {
            const C value = x[at + c];
            const bool better = where[c] < 0 || best[c] < value;
            best[c] = better ? value : best[c];
            where[c] = better ? at + c : where[c];
          }
        });
        for (int64_t c = 0; c < n; ++c) {
          if (where[c] >= 0) f(y + first + c, where[c]);
        }
      }
    }
  }
}

// The gradient of each output goes to the first of its largest inputs; every other tap of the
// window gets 0. With `adds`, both are added, since the windows overlap or leave out pixels. With
// `masks`, windows do not overlap, and what a pixel has got is multiplied by Relu's slope there.
template <int count, bool adds, bool masks, class Taps, class T>
LEAT_INLINE inline void give_lanes_to_largest(const Pool& p, const Taps& taps, int64_t row,
                                              int64_t ox, const T* x, const T* dy, T* dx) {
  using Numbers [[gnu::vector_size(64)]] = int32_t;
  Lanes best[count], gradient[count];
  Numbers where[count] = {};
  int32_t tap = 0;
  taps.for_each_tap(row, ox, [&](int64_t pixel) LEAT_INLINE {
    for (int i = 0; i < count; ++i) {
      Lanes value;
      load_lanes(x + pixel * p.channels + i * lanes, value);
      if (tap == 0) {
        best[i] = value;
      } else {
        where[i] = best[i] < value ? Numbers{} + tap : where[i];
        best[i] = best[i] < value ? value : best[i];
      }
    }
    ++tap;
  });
  for (int i = 0; i < count; ++i) load_lanes(dy + i * lanes, gradient[i]);
  const Lanes one = Lanes{} + 1, zero{};
  tap = 0;
  taps.for_each_tap(row, ox, [&](int64_t pixel) LEAT_INLINE {
    for (int i = 0; i < count; ++i) {
      T* const to = dx + pixel * p.channels + i * lanes;
      Lanes sum = {};
      if constexpr (adds) load_lanes(to, sum);
      Lanes got = sum + gradient[i];
      if constexpr (masks) got *= best[i] > 0 ? one : zero;  // NaN and infinities stay, as NaN
      store_lanes(to, where[i] == tap ? got : sum);
    }
    ++tap;
  });
}

template <bool adds, bool masks, class Taps, class T>
LEAT_INLINE inline void give_block_to_largest(const Pool& p, const Taps& taps, int64_t row,
                                              int64_t ox, int64_t n, const T* x, const T* dy,
                                              T* dx) {
  using C = ComputeType<T>;
  using Tap = std::conditional_t<sizeof(C) == 8, int64_t, int32_t>;
  C best[channel_block];
  Tap where[channel_block];
  C* const largest = best;
  Tap* const at = where;
  Tap tap = 0;
  taps.for_each_tap(row, ox, [&](int64_t pixel) LEAT_INLINE {
    const T* value = x + pixel * p.channels;
    if (tap == 0) {
      for (int64_t c = 0; c < n; ++c) largest[c] = value[c], at[c] = 0;
    } else {
      for (int64_t c = 0; c < n; ++c) {
        const C candidate = value[c];
        const bool better = largest[c] < candidate;
        largest[c] = better ? candidate : largest[c];
        at[c] = better ? tap : at[c];
      }
    }
    ++tap;
  });
  tap = 0;
  taps.for_each_tap(row, ox, [&](int64_t pixel) LEAT_INLINE {
    T* const sum = dx + pixel * p.channels;
    C updated[channel_block];  // a store might change what the next load reads
    for (int64_t c = 0; c < n; ++c) {
      const C old = adds ? C(sum[c]) : C(0), gradient = dy[c];
      C got = C(old + gradient);
      if constexpr (masks) got = C(got * C(largest[c] > 0));
      updated[c] = at[c] == tap ? got : old;
    }
    for (int64_t c = 0; c < n; ++c) sum[c] = T(updated[c]);
    ++tap;
  });
}

template <bool adds, bool masks, class Taps, class T>
LEAT_INLINE inline void give_rows_to_largest(const Pool& p, const Taps& taps, int64_t begin,
                                             int64_t end, const T* x, const T* dy, T* dx) {
  for_each_pixel(p, begin, end, [&](int64_t row, int64_t ox) LEAT_INLINE {
    const T* from = dy + (row * p.width.out + ox) * p.channels;
    int64_t done = 0;
    // A sum of two bfloat16 would have to be rounded.
    if constexpr (std::is_same_v<T, float> || (has_lanes<T> && !adds)) {
      done = for_channel_lanes<2>(p.channels, [&](auto count, int64_t first) LEAT_INLINE {
        give_lanes_to_largest<count, adds, masks>(p, taps, row, ox, x + first, from + first,
                                                  dx + first);
      });
    }
    const auto give = [&](int64_t first, int64_t n) LEAT_INLINE {
      give_block_to_largest<adds, masks>(p, taps, row, ox, n, x + first, from + first, dx + first);
    };
    for_channel_blocks(p.channels, give, done);
  });
}

template <bool adds, bool masks, class T>
void give_to_largest(const Pool& p, int64_t begin, int64_t end, const T* x, const T* dy, T* dx) {
  const auto give = [=](const auto& taps) {
    run_loop<T>(
        [=]() LEAT_INLINE { give_rows_to_largest<adds, masks>(p, taps, begin, end, x, dy, dx); });
  };
  if constexpr (adds) {
    give(p);
  } else {
    with_taps_of<true>(p, give);
  }
}

template <class T, bool masks>
BoundKernel bind_max_gradient(const KernelRequest& r) {
  const Pool p = pool_of(r.node, r.inputs[0].shape);
  if (p.x_elements() == 0) return {};
  if (p.has_each_pixel_once()) {
    return bound_kernel(2 * cost_ns(p), [p](const Arguments& a) {
      a.stream->parallel_for(p.rows(), grain(p, p.width.out * p.channels),
                             [&](int64_t begin, int64_t end) {
                               give_to_largest<false, masks>(p, begin, end, a.input<T>(0),
                                                             a.input<T>(2), a.output<T>());
                             });
    });
  }
  return bound_kernel(2 * cost_ns(p), [p](const Arguments& a) {
    const T *x = a.input<T>(0), *dy = a.input<T>(2);
    T* dx = a.output<T>();
    for_zeroed_images(a, p, dx, p.x_elements() / p.images, [=](int64_t begin, int64_t end) {
      give_to_largest<true, masks>(p, begin * p.rows_per_image(), end * p.rows_per_image(), x, dy,
                                   dx);
    });
  });
}

constexpr auto prepare_max_gradient_gradient = []<class T>(TypeTag<T>,
                                                           const KernelRequest& r) -> BoundKernel {
  const Pool p = pool_of(r.node, r.inputs[0].shape);
  if (p.y_elements() == 0) return {};
  return bound_kernel(2 * cost_ns(p), [p](const Arguments& a) {
    const T *x = a.input<T>(0), *dx = a.input<T>(2);
    T* dy = a.output<T>();
    for_zeroed_images(a, p, dy, p.y_elements() / p.images, [=](int64_t begin, int64_t end) {
      for_each_largest(p, x, begin, end, [=](int64_t y, int64_t at) { dy[y] = dx[at]; });
    });
  });
};

// ---- MaxPoolWithArgmax

// The places are counted in an image, or with include_batch_in_index in the whole batch.
int64_t counted_places(const KernelRequest& r) {
  const Shape& x = r.inputs[0].shape;
  return r.attr<bool>("include_batch_in_index") ? x.elements() : x.elements() / x[0];
}

template <class T, class Index>
BoundKernel bind_max_argmax(const KernelRequest& r) {
  const Shape& shape = r.inputs[0].shape;
  check(shape.elements() > 0, "tensor_in must not be empty, got shape ", shape);
  const Pool p = pool_of(r.node, shape);
  if (p.y_elements() == 0) return {};
  const int64_t counted = counted_places(r);
  return bound_kernel(2 * cost_ns(p), [p, counted](const Arguments& a) {
    const T* x = a.input<T>(0);
    T* y = a.output<T>(0);
    Index* places = a.output<Index>(1);
    a.stream->parallel_for(
        p.images, grain(p, p.y_elements() / p.images), [&](int64_t begin, int64_t end) {
          for (int64_t image = begin; image < end; ++image) {
            for_each_largest(p, x, image, image + 1, [=](int64_t to, int64_t at) {
              y[to] = x[at];
              places[to] = static_cast<Index>(at % counted);
            });
          }
        });
  });
}

template <class T, class Index>
BoundKernel bind_max_argmax_gradient(const KernelRequest& r) {
  using C = ComputeType<T>;
  const Pool p = pool_of(r.node, r.inputs[0].shape);
  if (p.x_elements() == 0) return {};
  const int64_t counted = counted_places(r);
  const auto cost = static_cast<double>(p.x_elements() + 2 * p.y_elements());
  return bound_kernel(cost, [p, counted](const Arguments& a) {
    const T* dy = a.input<T>(1);
    const Index* places = a.input<Index>(2);
    T* dx = a.output<T>();
    const int64_t x_image = p.x_elements() / p.images, y_image = p.y_elements() / p.images;
    for_zeroed_images(a, p, dx, x_image, [=](int64_t begin, int64_t end) {
      for (int64_t i = begin * y_image; i < end * y_image; ++i) {
        const int64_t begin_of_image = i / y_image * x_image, first = begin_of_image % counted;
        check(places[i] >= first && places[i] < first + x_image, "argmax[", i, "] is ", places[i],
              ", but the image pooled there has the places from ", first, " to ",
              first + x_image - 1);
        T& sum = dx[begin_of_image + (places[i] - first)];
        sum = T(C(sum) + C(dy[i]));
      }
    });
  });
}

}  // namespace

Kernel max_pool_kernel() {
  return cpu_kernel(
      "T",
      Types<float, double, half, bfloat16, int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t>{},
      prepare_max);
}
Kernel max_pool_gradient_kernel() {
  return cpu_kernel("T", NumberTypes{}, []<class T>(TypeTag<T>, const KernelRequest& r) {
    return bind_max_gradient<T, false>(r);
  });
}
Kernel max_pool_relu_gradient_kernel() {
  return cpu_kernel("T", NumberTypes{}, []<class T>(TypeTag<T>, const KernelRequest& r) {
    return bind_max_gradient<T, true>(r);
  });
}
Kernel max_pool_gradient_gradient_kernel() {
  return cpu_kernel("T", NumberTypes{}, prepare_max_gradient_gradient);
}
Kernel max_pool_argmax_kernel() {
  return cpu_kernel("T", NumberTypes{}, []<class T>(TypeTag<T>, const KernelRequest& r) {
    return r.attr<DType>("Targmax") == DType::i64 ? bind_max_argmax<T, int64_t>(r)
                                                  : bind_max_argmax<T, int32_t>(r);
  });
}
Kernel max_pool_argmax_gradient_kernel() {
  return cpu_kernel("T", NumberTypes{}, []<class T>(TypeTag<T>, const KernelRequest& r) {
    return r.attr<DType>("Targmax") == DType::i64 ? bind_max_argmax_gradient<T, int64_t>(r)
                                                  : bind_max_argmax_gradient<T, int32_t>(r);
  });
}

}  // namespace leat
