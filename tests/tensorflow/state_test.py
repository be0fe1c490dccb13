#!/usr/bin/env python3
"""State as TensorFlow's own client uses it: queues, staging areas, barriers, synchronous training. Every program agrees with
Session('').

  python3 tests/tensorflow/state_test.py --leat build/release/bin/leat [-v]

Needs TensorFlow (pip install tensorflow-cpu); exits with 77 (skipped) without it.
"""
import threading
import unittest

from leat_cluster import CONFIG, cluster, main, np, tf, tf1
from tensorflow.python.ops import gen_data_flow_ops
from tensorflow.python.ops.data_flow_ops import Barrier, MapStagingArea, StagingArea
from variables_test import PS, Agreement, on_both


class Queues(Agreement):
    def session(self):
        tf1.Session.reset(cluster().target)
        return tf1.Session(cluster().target, config=CONFIG)

    def test_an_input_pipeline_with_queue_runners(self):
        with tf1.Graph().as_default():
            with tf1.device(PS[1]):
                queue = tf1.FIFOQueue(5, [tf.int32, tf.string], shapes=[[], [2]])
            n = tf1.placeholder(tf.int32, [])
            counter = tf1.get_variable("counter", initializer=0)
            one = tf1.assign_add(counter, 1)
            enqueue = queue.enqueue([one, tf.stack([tf.constant("a"), tf.constant("b")])])
            tf1.train.add_queue_runner(tf1.train.QueueRunner(queue, [enqueue]))
            numbers, texts = queue.dequeue_many(4)
            size = queue.size()
            with self.session() as session:
                session.run(tf1.global_variables_initializer())
                coordinator = tf1.train.Coordinator()
                threads = tf1.train.start_queue_runners(session, coordinator)
                seen = []
                for _ in range(5):
                    value, text = session.run([numbers, texts])
                    seen.extend(value)
                    self.assertEqual(text.tolist(), [[b"a", b"b"]] * 4)
                self.assertTrue(0 <= session.run(size) <= 5)
                coordinator.request_stop()
                session.run(queue.close(cancel_pending_enqueues=True))
                coordinator.join(threads, stop_grace_period_secs=20)
                self.assertEqual(len(set(seen)), 20)
                with self.assertRaisesRegex(tf.errors.OutOfRangeError, "is closed and has insufficient elements"):
                    session.run(queue.dequeue_many(100))

    def test_without_a_shared_name_state_belongs_to_its_session(self):
        """So that a program may be started again on a cluster that is there: the queues of the one before are closed."""
        for shared in None, "shared":
            with tf1.Graph().as_default(), tf1.device(PS[1]):
                queue = tf1.FIFOQueue(9, [tf.float32], shapes=[[]], shared_name=shared)
                sums = tf1.ConditionalAccumulator(tf.float32, [], shared_name=shared and "sums")
                barrier = Barrier(tf.int32, [[]], shared_name=shared and "barrier")
                reader = tf1.TextLineReader()
                put = [queue.enqueue(1.0), sums.apply_grad(1.0), barrier.insert_many(0, ["k"], [1])]
                sizes = [queue.size(), sums.num_accumulated(), barrier.ready_size(), reader.num_records_produced()]
                with self.session() as first:
                    first.run(put)
                    self.assertEqual(first.run(sizes), [1, 1, 1, 0])
                    with tf1.Session(cluster().target, config=CONFIG) as second:
                        self.assertEqual(second.run(sizes), [1, 1, 1, 0] if shared else [0, 0, 0, 0])
                    self.assertEqual(first.run(sizes), [1, 1, 1, 0])
                    first.run([queue.close(), barrier.close()])
                with tf1.Session(cluster().target, config=CONFIG) as later:
                    if not shared:
                        later.run(put)
                    self.assertEqual(later.run(sizes), [1, 1, 1, 0])

    def test_one_of_several_queues(self):
        """QueueBase.from_list: as programs change between the queues of training and of evaluation."""
        seen = []
        for target in ("", cluster().target):
            with tf1.Graph().as_default():
                with tf1.device(PS[1] if target else None):
                    queues = [tf1.FIFOQueue(9, [tf.float32], shapes=[[]]), tf1.RandomShuffleQueue(9, 0, [tf.float32], shapes=[[]])]
                number, x = tf1.placeholder(tf.int32, []), tf1.placeholder(tf.float32, [])
                queue = tf1.QueueBase.from_list(number, queues)
                put, size, many = queue.enqueue(x), queue.size(), queue.dequeue_many(2)
                scaled = tf1.cond(tf.equal(number, 0), lambda: queue.dequeue() * 10, lambda: queue.dequeue() * 100)
                if target:
                    tf1.Session.reset(target)
                with tf1.Session(target, config=CONFIG) as session:
                    for n, value in ((0, 1), (0, 2), (0, 3), (1, 7), (1, 7)):
                        session.run(put, {number: n, x: value})
                    values = [session.run(fetch, {number: n}) for n, fetch in ((0, size), (1, size), (0, many), (0, scaled), (1, scaled))]
                    seen.append([np.asarray(v).tolist() for v in [*values, session.run([q.size() for q in queues])]])
                    with self.assertRaisesRegex(tf.errors.InvalidArgumentError, "indices = 2 is not in"):
                        session.run(size, {number: 2})
        self.assertEqual(seen[1], seen[0])

    def test_a_shuffled_queue(self):
        with tf1.Graph().as_default():
            queue = tf1.RandomShuffleQueue(100, 10, [tf.int64], shapes=[[]], seed=1)
            put = queue.enqueue_many([tf.range(50, dtype=tf.int64)])
            take, rest = queue.dequeue_many(40), queue.dequeue_up_to(40)
            with self.session() as session:
                session.run(put)
                values = session.run(take).tolist()
                self.assertNotEqual(values, sorted(values))
                session.run(queue.close())
                values += session.run(rest).tolist()
                self.assertEqual(sorted(values), list(range(50)))

    def test_a_shuffled_queue_draws_what_tensorflow_draws(self):
        seen = []
        for target in ("", cluster().target):
            with tf1.Graph().as_default():
                queue = tf1.RandomShuffleQueue(200, 10, [tf.int64, tf.string], shapes=[[], []], seed=7)
                put = queue.enqueue_many([tf.range(50, dtype=tf.int64), tf.as_string(tf.range(50))])
                take, rest, one, close = queue.dequeue_many(20), queue.dequeue_up_to(90), queue.dequeue(), queue.close()
                if target:
                    tf1.Session.reset(target)
                with tf1.Session(target, config=CONFIG) as session:
                    session.run(put)
                    out = [session.run(x) for x in (take, one, one, put, put, take, close, rest)]
                    seen.append([[np.asarray(part).tolist() for part in x] for x in out if x is not None])
        self.assertEqual(seen[1], seen[0])

    def test_a_queue_that_pads(self):
        elements = [([[1, 2]], [b"a"]), ([[3, 4], [5, 6]], []), (np.zeros((0, 2)), [b"b", b"c"]), ([[7, 8]], [b"d"])]
        results = []
        for target in ("", cluster().target):
            with tf1.Graph().as_default():
                queue = tf1.PaddingFIFOQueue(10, [tf.float32, tf.string, tf.int32], shapes=[[None, 2], [None], []])
                x, s, n = tf1.placeholder(tf.float32), tf1.placeholder(tf.string), tf1.placeholder(tf.int32)
                put, close = queue.enqueue([x, s, n]), queue.close()
                many = queue.enqueue_many([x, s, n])
                fetches = [queue.dequeue_many(3), queue.dequeue(), queue.dequeue_up_to(5)]
                none = queue.dequeue_many(0)
                if target:
                    tf1.Session.reset(target)
                with tf1.Session(target, config=CONFIG) as session:
                    for i, (a, b) in enumerate(elements):
                        session.run(put, {x: a, s: b, n: i})
                    session.run(many, {x: np.ones((2, 1, 2)), s: [[b"x", b"y"]] * 2, n: [8, 9]})
                    session.run(put, {x: [[9, 9]] * 3, s: [b"z"], n: 10})
                    out = [session.run(fetches[0]), session.run(none)]
                    with self.assertRaisesRegex(tf.errors.InvalidArgumentError, "Shape mismatch in tuple component 0"):
                        session.run(put, {x: [[1, 2, 3]], s: [b"z"], n: 10})
                    session.run(close)
                    out += [session.run(fetches[1]), session.run(fetches[2])]
                results.append(out)
        for expected, got in zip(tf.nest.flatten(results[0]), tf.nest.flatten(results[1])):
            np.testing.assert_array_equal(got, expected)
            self.assertEqual((got.dtype, got.shape), (expected.dtype, expected.shape))

    def test_batches_of_sequences(self):
        """tf.train.batch(dynamic_pad=True), as recurrent networks are fed."""
        with tf1.Graph().as_default():
            length = tf1.train.range_input_producer(6, num_epochs=1, shuffle=False).dequeue()
            sequence, lengths = tf1.train.batch([tf.range(length), length], 3, dynamic_pad=True)
            with self.session() as session:
                session.run(tf1.local_variables_initializer())
                coordinator = tf1.train.Coordinator()
                threads = tf1.train.start_queue_runners(session, coordinator)
                np.testing.assert_array_equal(session.run([sequence, lengths])[0], [[0, 0], [0, 0], [0, 1]])
                np.testing.assert_array_equal(session.run(sequence), [[0, 1, 2, 0, 0], [0, 1, 2, 3, 0], [0, 1, 2, 3, 4]])
                coordinator.request_stop()
                coordinator.join(threads, stop_grace_period_secs=20, ignore_live_threads=True)

    def test_a_queue_sorted_by_priority(self):
        """Elements of equal priority, too, come in TensorFlow's order. Its dequeue_up_to loses what is left if that is less."""
        results = []
        for target in ("", cluster().target):
            with tf1.Graph().as_default():
                queue = tf1.PriorityQueue(60, [tf.int32, tf.string], shapes=[[], []])
                unshaped = gen_data_flow_ops.priority_queue_v2(shapes=[], component_types=[tf.int32])
                p, n = tf1.placeholder(tf.int64), tf1.placeholder(tf.int32)
                put, put_many = queue.enqueue([p, n, tf.as_string(n)]), queue.enqueue_many([p, n, tf.as_string(n)])
                many, rest, one, close = queue.dequeue_many(7), queue.dequeue_up_to(18), queue.dequeue(), queue.close()
                wrong = [gen_data_flow_ops.queue_enqueue_v2(unshaped, [p, n]),
                         gen_data_flow_ops.queue_dequeue_many_v2(unshaped, 1, [tf.int64, tf.int32])]
                if target:
                    tf1.Session.reset(target)
                with tf1.Session(target, config=CONFIG) as session:
                    out = []
                    for i in range(3):
                        session.run(put_many, {p: np.random.default_rng(i).integers(-3, 3, 12), n: np.arange(12) + 100 * i})
                        session.run(put, {p: 2**62, n: i})
                        session.run(put, {p: -2**62, n: i})
                        out += [session.run(one), session.run(many)]
                    for fetch in wrong:
                        with self.assertRaises(tf.errors.InvalidArgumentError):
                            session.run(fetch, {p: [1], n: 2})
                    with self.assertRaises(tf.errors.InvalidArgumentError):
                        session.run(put, {p: [1], n: 2})
                    session.run(close)
                    out.append(session.run(rest))
                    with self.assertRaises(tf.errors.OutOfRangeError):
                        session.run(rest)
                results.append([np.asarray(x).tolist() for x in tf.nest.flatten(out)])
        self.assertEqual(results[1], results[0])

    def test_options(self):
        """Shapes of components, lines to skip, the size of a stack: refused where Session('') refuses them."""
        r = tf.raw_ops
        shapes = [[], [tf.TensorShape([2])], [tf.TensorShape([None, 2])], [tf.TensorShape(None)], [tf.TensorShape([2])] * 2]
        sizes = [lambda name, make=make, s=s: r.QueueSizeV2(handle=make(component_types=[tf.float32], shapes=s, shared_name=name))
                 for make in [r.FIFOQueueV2, r.RandomShuffleQueueV2, r.PaddingFIFOQueueV2] for s in shapes]
        sizes += [lambda name, s=s: r.QueueSizeV2(handle=r.PriorityQueueV2(component_types=[tf.float32], shapes=s, shared_name=name)) for s in shapes]
        sizes += [lambda name, n=n: r.ReaderNumRecordsProducedV2(reader_handle=r.TextLineReaderV2(skip_header_lines=n, shared_name=name))
                  for n in [-1, 0, 2]]
        sizes += [lambda name, n=n: r.StackPushV2(handle=r.StackV2(max_size=np.int32(n), elem_type=tf.float32), elem=np.float32(1)) for n in [1, [1]]]
        for n, build in enumerate(sizes):
            results = []
            for target in ("", cluster().target):
                if target:
                    tf1.Session.reset(target)
                with tf1.Graph().as_default(), tf1.Session(target, config=CONFIG) as session:
                    try:
                        results.append(float(session.run(build(f"options{n}"))))
                    except tf.errors.OpError as error:
                        results.append(type(error).__name__)
            self.assertEqual(results[1], results[0], f"case {n}")

    def test_a_sorted_batch_waits_for_all_of_its_elements(self):
        with tf1.Graph().as_default():
            queue = tf1.PriorityQueue(10, [tf.int32], shapes=[[]])
            p = tf1.placeholder(tf.int64)
            put, take, size = queue.enqueue([p, 0]), queue.dequeue_many(3)[0], queue.size()
            with self.session() as session:
                taken = []
                thread = threading.Thread(target=lambda: taken.extend(session.run(take)))
                thread.start()
                for priority in (5, 3):
                    session.run(put, {p: priority})
                with self.assertRaises(tf.errors.DeadlineExceededError):
                    session.run(take, options=tf1.RunOptions(timeout_in_ms=200))
                self.assertEqual(session.run(size), 2)
                session.run(put, {p: 1})
                thread.join(20)
                self.assertEqual(taken, [1, 3, 5])
                session.run(put, {p: 8})
                session.run(queue.close())
                self.assertEqual(session.run(queue.dequeue_up_to(3))[0].tolist(), [8])

    def test_a_wait_ends_with_its_deadline_and_with_its_session(self):
        with tf1.Graph().as_default():
            queue = tf1.FIFOQueue(5, [tf.float32])
            take = queue.dequeue()
            session = self.session()
            with self.assertRaises(tf.errors.DeadlineExceededError):
                session.run(take, options=tf1.RunOptions(timeout_in_ms=300))
            errors = []

            def wait():
                try:
                    session.run(take)
                except tf.errors.CancelledError as error:
                    errors.append(error)
            threads = [threading.Thread(target=wait) for _ in range(8)]
            for thread in threads:
                thread.start()
            with self.assertRaises(tf.errors.DeadlineExceededError):  # so all of them are waiting
                session.run(take, options=tf1.RunOptions(timeout_in_ms=300))
            session.close()
            for thread in threads:
                thread.join(20)
            self.assertEqual(len(errors), 8)


class Names(unittest.TestCase):
    """State is found by its kind, too: programs that do not know of each other use one name."""

    def programs(self):
        raw, named = tf.raw_ops, {"shared_name": "stats"}

        def variable(op, assign, read, size):
            v = op(shape=[size], dtype=tf.float32, **named)
            return assign(v, tf.fill([size], float(size))), read(v)

        def queue():
            q = tf1.FIFOQueue(3, [tf.float32], [[]], **named)
            return q.enqueue(5.0), q.size()

        def table():
            t = raw.MutableHashTableV2(key_dtype=tf.string, value_dtype=tf.int64, **named)
            return (raw.LookupTableInsertV2(table_handle=t, keys=tf.constant(["a", "b"]), values=tf.constant([3, 4], tf.int64)),
                    raw.LookupTableSizeV2(table_handle=t))

        def accumulator():
            a = tf1.ConditionalAccumulator(tf.float32, shape=[], **named)
            return a.apply_grad(2.0), a.num_accumulated()

        def barrier():
            b = Barrier(tf.int32, [[]], **named)
            return b.insert_many(0, ["k"], [1]), b.ready_size()

        def reader():
            r = raw.TextLineReaderV2(**named)
            return raw.ReaderResetV2(reader_handle=r), raw.ReaderNumRecordsProducedV2(reader_handle=r)

        def iterator():
            i = raw.IteratorV2(container="", output_types=[tf.int64], output_shapes=[[]], **named)
            return (raw.MakeIterator(dataset=tf.data.Dataset.range(7, 9)._variant_tensor, iterator=i),
                    raw.IteratorGetNext(iterator=i, output_types=[tf.int64], output_shapes=[[]]))

        floats = {"dtypes": [tf.float32], **named}
        index = {"indices": [0], "values": [tf.constant(1.0)]}
        return [
            lambda: variable(raw.VariableV2, lambda v, x: raw.Assign(ref=v, value=x), lambda v: tf.identity(v), 2),
            lambda: variable(raw.VarHandleOp, lambda v, x: raw.AssignVariableOp(resource=v, value=x),
                             lambda v: raw.ReadVariableOp(resource=v, dtype=tf.float32), 3),
            queue, table, accumulator, barrier, reader, iterator,
            lambda: (raw.Stage(values=[tf.constant(1.0)], **named), raw.StageSize(**floats)),
            lambda: (raw.MapStage(key=tf.constant(1, tf.int64), **index, **floats), raw.MapSize(**floats)),
            lambda: (raw.OrderedMapStage(key=tf.constant(1, tf.int64), **index, **floats), raw.OrderedMapSize(**floats)),
        ]

    def test_state_of_all_kinds_under_one_name(self):
        seen = []
        for targets in ["", ""], cluster().targets:
            graph = tf.Graph()
            with graph.as_default(), tf1.device(PS[0] if targets[0] else None):
                pairs = [program() for program in self.programs()]
            if targets[0]:
                tf1.Session.reset(targets[0])
            with tf1.Session(targets[0], graph=graph, config=CONFIG) as one, tf1.Session(targets[1], graph=graph, config=CONFIG) as other:
                for start, _ in pairs:
                    one.run(start)
                # Another session of TensorFlow's own process has other state.
                seen.append([np.asarray(x).tolist() for x in (other if targets[0] else one).run([value for _, value in pairs])])
        self.assertEqual(seen[0], [[2, 2], [3, 3, 3], 1, 2, 1, 1, 0, [7], 1, 1, 1])
        self.assertEqual(seen[1], seen[0])

    def test_queues_are_of_one_kind(self):
        for targets in ["", ""], cluster().targets:
            with tf1.Graph().as_default(), tf1.device(PS[0] if targets[0] else None):
                first, second = tf1.FIFOQueue(3, [tf.float32], [[]], shared_name="q"), tf1.PaddingFIFOQueue(3, [tf.float32], [[]], shared_name="q")
                sizes = first.size(), second.size()
                with tf1.Session(targets[0], config=CONFIG) as session:
                    session.run(sizes[0])
                    with self.assertRaises(tf.errors.InvalidArgumentError):
                        session.run(sizes[1])


class StagingAreas(unittest.TestCase):
    """They have no handle: operations find them by name."""

    def on_both(self, run):
        """run(session) on both runtimes, each with new state: what it returns must agree."""
        results = []
        for target in ("", cluster().target):
            if target:
                tf1.Session.reset(target)
            with tf1.Graph().as_default():
                with tf1.Session(target, config=CONFIG) as session:
                    results.append([np.asarray(x).tolist() for x in tf.nest.flatten(run(session))])
        self.assertEqual(results[1], results[0])
        return results[1]

    def outcome(self, session, fetch, feeds=None):
        try:
            return session.run(fetch, feeds) if not isinstance(fetch, tf.Operation) else session.run(fetch, feeds) or "done"
        except tf.errors.OpError as error:
            return type(error).__name__

    def test_values_pass_in_order(self):
        def run(session):
            area = StagingArea([tf.float32, tf.string], shapes=[[2], []], names=["x", "s"])
            x = tf1.placeholder(tf.float32, [2])
            put = area.put({"x": x, "s": tf.as_string(tf.reduce_sum(x))})
            get, peek, size, clear = area.get(), area.peek(1), area.size(), area.clear()
            for i in range(5):
                session.run(put, {x: [i, 2 * i]})
            out = [session.run([size, peek]), session.run(get), session.run(get), session.run([size, peek])]
            session.run(clear)
            out.append(session.run(size))
            session.run(put, {x: [7, 8]})
            return out + [session.run(get)]
        self.on_both(run)

    def test_a_pipeline_of_one_step(self):
        """As models stage the next batch while they work on the last."""
        def run(session):
            area = StagingArea([tf.float32])
            counter = tf1.get_variable("counter", initializer=0.0, use_resource=False)
            put = area.put([tf1.assign_add(counter, 1.0) * 1.0])  # TensorFlow's Stage would keep the variable's memory
            with tf1.control_dependencies([put]):
                work = tf.square(area.get())
            session.run(counter.initializer)
            session.run(put)
            return [session.run(work) for _ in range(4)]
        self.on_both(run)

    def test_wrong_calls(self):
        def run(session):
            area = StagingArea([tf.float32], memory_limit=100, capacity=3, shared_name="few")
            i = tf1.placeholder(tf.int32)
            x = tf1.placeholder(tf.float32)
            put, get, peek, size = area.put([x]), area.get(), area.peek(i), area.size()
            two = StagingArea([tf.float32, tf.float32], shared_name="few").get()
            out = [self.outcome(session, put, {x: np.zeros(26)}), self.outcome(session, put, {x: np.zeros(25)}),
                   self.outcome(session, peek, {i: [0, 0]}), self.outcome(session, two), session.run(size)]
            words = StagingArea([tf.string], memory_limit=100)
            for text in ("a" * 76, "a" * 77):  # a string has 24 bytes more
                out.append(self.outcome(session, words.put([tf.constant([text])])))
            return out + [session.run(words.size())]
        self.on_both(run)

    def test_maps(self):
        for ordered in (True, False):
            def run(session):
                area = MapStagingArea([tf.float32, tf.int32, tf.string], ordered=ordered, shared_name=f"map{ordered}")
                key, n = tf1.placeholder(tf.int64, []), tf1.placeholder(tf.int32, [])
                values = [tf.cast(n, tf.float32), n, tf.as_string(n)]
                put = area.put(key, values, [0, 1, 2])
                parts = [area.put(key, [values[i]], [i]) for i in range(3)]
                two = area.put(key, [values[0], values[2]], [0, 2])
                get, any_key, some, first = area.get(key), area.get(), area.get(key, [1, 2]), area.get(key, [0])
                peek, size, incomplete, clear = area.peek(key), area.size(), area.incomplete_size(), area.clear()
                out = []
                for k in (5, -3, 2**40, 8, 0, 77, 13):
                    session.run(put, {key: k, n: k % 1000})
                out += [session.run([size, incomplete, peek], {key: 5}), session.run(get, {key: 8}), session.run(any_key)]
                for part in (parts[1], parts[0], parts[1], parts[2]):
                    out += [self.outcome(session, part, {key: 9, n: 4}), session.run([size, incomplete])]
                for op in (two, parts[0], parts[1]):
                    out += [self.outcome(session, op, {key: 10, n: 6}), session.run([size, incomplete])]
                out += [session.run(some, {key: 10}), self.outcome(session, some, {key: 10}), self.outcome(session, peek, {key: 10}),
                        session.run(first, {key: 10}), session.run(size)]
                session.run(put, {key: 5, n: 99})  # a complete key stays as it is
                out.append(session.run(get, {key: 5}))
                out += [session.run(any_key) for _ in range(session.run(size))]
                session.run(parts[0], {key: 1, n: 1})
                session.run(put, {key: 2, n: 1})
                session.run(clear)
                return out + [session.run([size, incomplete])]
            self.on_both(run)

    def test_wrong_calls_of_maps(self):
        """TensorFlow's memory_limit counts the last component only."""
        def run(session):
            area = MapStagingArea([tf.int32, tf.float32], shared_name="wrong", memory_limit=1000)
            i, key = tf1.placeholder(tf.int32), tf.constant(3, tf.int64)
            ops = gen_data_flow_ops
            put = ops.map_stage(key, i, [2, 1.0], dtypes=[tf.int32, tf.float32], shared_name="wrong", memory_limit=1000)
            peek = ops.map_peek(key, i, dtypes=[tf.int32], shared_name="wrong", memory_limit=1000)
            out = [self.outcome(session, put, {i: indices}) for indices in ([1, 0], [0, 0])]
            out += [self.outcome(session, area.put(tf.constant(4, tf.int64), [tf.constant(2), tf.zeros(300)], [0, 1])), self.outcome(session, put, {i: [0, 1]})]
            return out + [self.outcome(session, peek, {i: indices}) for indices in ([0], [2], [1, 0])]
        self.on_both(run)

    def test_waiting(self):
        """At a full area, an empty one, a missing key; each wait ends with its deadline."""
        tf1.Session.reset(cluster().target)
        with tf1.Graph().as_default(), tf1.Session(cluster().target, config=CONFIG) as session:
            x = tf1.placeholder(tf.float32)
            area, keyed = StagingArea([tf.float32], capacity=2, memory_limit=12), MapStagingArea([tf.float32], capacity=1)
            put, get, peek, size, clear = area.put([x]), area.get(), area.peek(1), area.size(), area.clear()
            stage = [keyed.put(tf.constant(k, tf.int64), [x], [0]) for k in (1, 2)]
            unstage = [keyed.get(tf.constant(k, tf.int64)) for k in (1, 2)]

            def must_wait(fetch, value=0.0):
                with self.assertRaisesRegex(tf.errors.DeadlineExceededError, "staging"):
                    session.run(fetch, {x: value}, options=tf1.RunOptions(timeout_in_ms=150))

            def waiting(fetch, value=0.0):
                results = []
                thread = threading.Thread(target=lambda: results.append(session.run(fetch, {x: value})))
                thread.start()
                return thread, results

            def ends(wait):
                wait[0].join(20)
                self.assertFalse(wait[0].is_alive())
                return wait[1][0]

            must_wait(get)
            must_wait(peek)
            takers = [waiting(get) for _ in range(3)]
            for i in range(3):
                session.run(put, {x: i})
            self.assertEqual(sorted(ends(taker)[0] for taker in takers), [0, 1, 2])
            session.run(put, {x: 1})
            must_wait(put, [1.0, 2.0, 3.0])  # too many bytes
            session.run(put, {x: 2})
            must_wait(put)
            putter = waiting(put, 3)
            self.assertEqual(session.run(get), [1])
            ends(putter)
            self.assertEqual(session.run([size, peek]), [2, [3]])
            putter = waiting(put, [1.0, 2.0, 3.0])
            session.run(clear)
            ends(putter)
            self.assertEqual(session.run(size), 1)

            must_wait(unstage[0])
            taker = waiting(unstage[1])
            session.run(stage[0], {x: 5})
            must_wait(unstage[1])
            must_wait(stage[1])
            putter = waiting(stage[1], 6)
            self.assertEqual(session.run(unstage[0])[1], [5.0])
            ends(putter)
            self.assertEqual(ends(taker)[1], [6.0])


class Barriers(unittest.TestCase):
    def test_tuples_leave_when_they_are_complete(self):
        results = []
        for target in ("", cluster().target):
            with tf1.Graph().as_default():
                barrier = Barrier([tf.float32, tf.string], shapes=[[2], []])
                keys = tf1.placeholder(tf.string, [None])
                numbers = tf.stack([tf.strings.to_number(keys), -tf.strings.to_number(keys)], 1)
                insert = [barrier.insert_many(0, keys, numbers), barrier.insert_many(1, keys, "value " + keys)]
                count = tf1.placeholder(tf.int32, [])
                take, some = barrier.take_many(count), barrier.take_many(count, allow_small_batch=True)
                sizes = [barrier.ready_size(), barrier.incomplete_size()]
                close, cancel = barrier.close(), barrier.close(cancel_pending_enqueues=True)
                if target:
                    tf1.Session.reset(target)
                out = []
                with tf1.Session(target, config=CONFIG) as session:
                    def run(fetch, feeds=None):
                        try:
                            out.append(session.run(fetch, feeds))
                        except tf.errors.OpError as error:
                            out.append(type(error).__name__)

                    for component, texts in ((0, "3 1 4"), (1, "4 9"), (0, "7 5 9 6"), (1, "6 1 7 5"), (0, ""), (1, "8"), (0, "20 21 22 23 24"),
                                             (1, "23 20 22 21 24")):
                        run(insert[component], {keys: texts.split()})
                        run(sizes)
                    for fetch, n in ((take, 3), (take, 0), (some, 4)):
                        run(fetch, {count: n})
                    run(close)
                    for fetch, n in ((close, 0), (take, 90), (take, 1), (some, 2)):
                        run(fetch, {count: n})
                    for component, text in ((0, "100"), (1, "3"), (0, "8"), (1, "3")):
                        run(insert[component], {keys: [text]})
                        run(sizes)
                    for fetch, n in ((some, 50), (some, 1), (take, 0), (cancel, 0), (cancel, 0)):
                        run(fetch, {count: n})
                    for text in ("101", "8"):
                        run(insert[0], {keys: [text]})
                    run(sizes)
                results.append([np.asarray(x).tolist() for x in tf.nest.flatten(out)])
        self.assertEqual(results[1], results[0])
        self.assertIn("OutOfRangeError", results[0])

    def test_wrong_calls(self):
        results = []
        for target in ("", cluster().target):
            with tf1.Graph().as_default():
                if target:
                    tf1.Session.reset(target)
                ops = gen_data_flow_ops
                barrier = ops.barrier([tf.float32, tf.int32], shapes=[[], [2]])
                x, keys = tf1.placeholder(tf.float32), tf1.placeholder(tf.string)
                first = ops.barrier_insert_many(barrier, keys, x, 0)
                out = []
                with tf1.Session(target, config=CONFIG) as session:
                    for fetch, names, value in (
                            (first, ["a"], [1.0]), (first, ["a"], [2.0]), (first, ["b"], np.zeros((1, 0))),
                            (ops.barrier_insert_many(barrier, keys, x, 2), ["b"], [1.0]),
                            (ops.barrier_insert_many(barrier, keys, x, 1), ["b"], [1.0]),
                            (ops.barrier_insert_many(ops.barrier([tf.float32], [[3]]), keys, x, 0), ["b"], [[1.0, 2]]),
                            (ops.barrier_ready_size(ops.barrier([tf.float32], [])), [], []),
                            (ops.barrier_ready_size(ops.barrier([tf.float32], [[]], capacity=3)), [], []),
                            (ops.barrier_take_many(barrier, 1, [tf.int32, tf.float32]), [], []),
                            (ops.barrier_take_many(barrier, [1], [tf.float32, tf.int32]), [], []),
                            (ops.barrier_take_many(barrier, 1, [tf.float32, tf.int32], timeout_ms=5), [], [])):
                        try:
                            session.run(fetch, {keys: names, x: value})
                            out.append("no error")
                        except tf.errors.OpError as error:
                            out.append(type(error).__name__)
                results.append(out)
        self.assertEqual(results[1], results[0])

    def test_waiting(self):
        tf1.Session.reset(cluster().target)
        with tf1.Graph().as_default(), tf1.Session(cluster().target, config=CONFIG) as session:
            barrier = Barrier([tf.int32, tf.int32], shapes=[[], []])
            keys, count = tf1.placeholder(tf.string, [None]), tf1.placeholder(tf.int32, [])
            insert = [barrier.insert_many(i, keys, tf.strings.to_number(keys, tf.int32)) for i in range(2)]
            take, some, close = barrier.take_many(count)[1], barrier.take_many(count, allow_small_batch=True)[1], barrier.close()
            session.run(insert[0], {keys: ["1", "2", "3", "4"]})
            with self.assertRaisesRegex(tf.errors.DeadlineExceededError, "barrier"):
                session.run(take, {count: 1}, options=tf1.RunOptions(timeout_in_ms=150))
            results = {}

            def wait(name, fetch, n):
                try:
                    results[name] = session.run(fetch, {count: n}).tolist()
                except tf.errors.OpError as error:
                    results[name] = type(error).__name__
            threads = {name: threading.Thread(target=wait, args=(name, *call))
                       for name, call in dict(two=(take, 2), many=(take, 9), rest=(some, 9)).items()}
            threads["two"].start()
            session.run(insert[1], {keys: ["3"]})
            session.run(insert[1], {keys: ["2"]})
            threads["two"].join(20)
            self.assertEqual(sorted(results["two"]), [b"2", b"3"])
            threads["many"].start()
            threads["rest"].start()
            session.run(insert[1], {keys: ["1"]})
            session.run(close)  # nine can never come now
            for thread in threads.values():
                thread.join(20)
            self.assertEqual(results["many"], "OutOfRangeError")
            self.assertEqual(results["rest"], [b"1"])


class Synchronous(Agreement):
    def train(self, use_resource, workers=2, steps=8, learn=lambda: tf1.train.MomentumOptimizer(0.05, 0.9)):
        """SyncReplicasOptimizer, a thread per worker, each with its own session; every update is the mean of both batches."""
        tf1.Session.reset(cluster().target)
        losses = [[] for _ in range(workers)]
        problems = []
        is_ready = threading.Event()  # else the second would look again after 30 s

        def run(worker):
            try:
                if worker > 0:
                    is_ready.wait(60)
                with tf1.Graph().as_default():
                    with tf1.device(tf1.train.replica_device_setter(ps_tasks=2, worker_device=f"/job:worker/task:{worker}")):
                        rng = np.random.default_rng(0)
                        x, y = tf1.placeholder(tf.float32, [None, 8]), tf1.placeholder(tf.float32, [None, 1])
                        w = tf1.get_variable("w", initializer=rng.random((8, 1), dtype=np.float32), use_resource=use_resource)
                        loss = tf.reduce_mean(tf.square(tf.matmul(x, w) - y))
                        optimizer = tf1.train.SyncReplicasOptimizer(learn(), workers, workers)
                        train = optimizer.minimize(loss, global_step=tf1.train.get_or_create_global_step())
                        hook = optimizer.make_session_run_hook(worker == 0, num_tokens=0)
                    with tf1.train.MonitoredTrainingSession(
                            cluster().targets[worker], is_chief=worker == 0, config=CONFIG, hooks=[hook],
                            max_wait_secs=60) as session:
                        is_ready.set()
                        for step in range(steps):
                            rows = np.random.default_rng(1000 * worker + step).random((4, 9), dtype=np.float32)
                            losses[worker].append(session.run([loss, train], {x: rows[:, :8], y: rows[:, 8:]})[0])
            except Exception as problem:  # pylint: disable=broad-except
                problems.append(problem)
        threads = [threading.Thread(target=run, args=(k,)) for k in range(workers)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(90)
        if problems:
            raise problems[0]
        return losses

    def reference(self, workers=2, steps=8):
        """The same by hand: both batches, one update with the mean gradient."""
        w = np.random.default_rng(0).random((8, 1), dtype=np.float32)
        velocity = np.zeros_like(w)
        losses = [[] for _ in range(workers)]
        for step in range(steps):
            gradients = []
            for worker in range(workers):
                rows = np.random.default_rng(1000 * worker + step).random((4, 9), dtype=np.float32)
                error = rows[:, :8] @ w - rows[:, 8:]
                losses[worker].append(np.mean(error ** 2))
                gradients.append(2 * rows[:, :8].T @ error / 4)
            velocity = 0.9 * velocity + sum(gradients) / workers
            w = w - 0.05 * velocity
        return losses

    def test_sync_replicas(self):
        for use_resource in (False, True):
            with self.subTest(use_resource=use_resource):
                np.testing.assert_allclose(self.train(use_resource), self.reference(), rtol=1e-4)


class Samplers(Agreement):
    def test_learned_unigrams_over_steps(self):
        """What is drawn depends on the true classes of all steps before; batches differ in size."""
        for name in ["LearnedUnigramCandidateSampler", "ThreadUnsafeUnigramCandidateSampler"]:
            def build(sample=getattr(tf.raw_ops, name)):
                trues = tf1.placeholder(tf.int64, [None, 2])
                return [sample(true_classes=trues, num_true=2, num_sampled=5, unique=unique, range_max=37, seed=5, seed2=6)
                        for unique in (True, False)], [trues]
            rng = np.random.default_rng(0)
            batches = [np.minimum(rng.geometric(0.2, (n, 2)), 36) for n in (4, 4, 70, 0, 9)]
            self.assert_same(on_both(build, steps=5, feeds=lambda step: [batches[step]]))


if __name__ == "__main__":
    main(__doc__, parameter_servers=2)
