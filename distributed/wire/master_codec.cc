#include "distributed/wire/master_codec.h"

#include <map>

#include "distributed/proto/master.pb.h"

namespace leat {
namespace {

// Zero, meaning none, if the client means none.
std::chrono::milliseconds timeout_of(int64_t milliseconds) {
  const bool is_none = milliseconds < 0 || milliseconds > longest_timeout.count();
  return std::chrono::milliseconds(is_none ? 0 : milliseconds);
}

void write_event(const TraceEvent& event, tensorflow::NodeExecStats& node) {
  const int64_t duration = event.end_ns - event.start_ns;
  node.set_node_name(event.node);
  node.set_all_start_micros(event.start_ns / 1000);
  node.set_op_end_rel_micros(duration / 1000);
  node.set_all_end_rel_micros(duration / 1000);
  node.set_all_start_nanos(event.start_ns);
  node.set_op_end_rel_nanos(duration);
  node.set_all_end_rel_nanos(duration);
  node.set_scheduled_micros(event.start_ns / 1000);
  node.set_scheduled_nanos(event.start_ns);
  node.set_thread_id(event.thread);
  node.set_timeline_label(concat(event.node, " = ", event.op, "(", event.inputs, ")"));
  if (event.output_bytes > 0) {
    tensorflow::AllocatorMemoryUsed& memory = *node.add_memory();
    memory.set_allocator_name("leat");
    memory.set_total_bytes(event.output_bytes);
    memory.set_peak_bytes(event.output_bytes);
  }
}

TraceEvent read_event(const tensorflow::NodeExecStats& node, const std::string& device) {
  TraceEvent event;
  event.node = node.node_name();
  // "name = Op(inputs)"
  const std::string& label = node.timeline_label();
  const size_t op = label.find(" = "), open = label.find('(', op);
  if (op != std::string::npos && open != std::string::npos) {
    event.op = label.substr(op + 3, open - op - 3);
    event.inputs = label.substr(open + 1, label.rfind(')') - open - 1);
  }
  event.device = device;
  event.start_ns = node.all_start_nanos();
  event.end_ns = node.all_start_nanos() + node.all_end_rel_nanos();
  for (const auto& memory : node.memory()) event.output_bytes += memory.total_bytes();
  event.thread = node.thread_id();
  return event;
}

void write_step_stats(const std::vector<TraceEvent>& events, tensorflow::StepStats& stats) {
  std::map<std::string, tensorflow::DeviceStepStats*> devices;
  for (const TraceEvent& event : events) {
    tensorflow::DeviceStepStats*& device = devices[event.device];
    if (device == nullptr) {
      device = stats.add_dev_stats();
      device->set_device(event.device);
    }
    write_event(event, *device->add_node_stats());
  }
}

// TensorFlow's other values ask for swapping, or for nothing without hints on nodes.
Recompute read_recompute(tensorflow::RewriterConfig::MemOptType type) {
  switch (type) {
    case tensorflow::RewriterConfig::HEURISTICS:
      return Recompute::layers;
    case tensorflow::RewriterConfig::RECOMPUTATION_HEURISTICS:
      return Recompute::automatic;
    default:
      return Recompute::nothing;
  }
}

// TensorFlow has no option for it, but room for rewrites of others.
constexpr std::string_view tensor_float_32 = "tensor_float_32";

// TensorFlow's bfloat16 is for CPUs, since its GPUs have float16; here it is for both.
MixedPrecision read_mixed_precision(const tensorflow::RewriterConfig& config) {
  using Config = tensorflow::RewriterConfig;
  if (config.auto_mixed_precision_onednn_bfloat16() == Config::ON) return MixedPrecision::bfloat16;
  if (config.auto_mixed_precision_cpu() == Config::ON) return MixedPrecision::float16;
  if (config.auto_mixed_precision() == Config::ON) return MixedPrecision::float16_on_gpus;
  for (const auto& each : config.custom_optimizers())
    if (each.name() == tensor_float_32) return MixedPrecision::tensor_float_32;
  return MixedPrecision::nothing;
}

void write_mixed_precision(MixedPrecision format, tensorflow::RewriterConfig& config) {
  using Config = tensorflow::RewriterConfig;
  switch (format) {
    case MixedPrecision::nothing:
      return;
    case MixedPrecision::bfloat16:
      return config.set_auto_mixed_precision_onednn_bfloat16(Config::ON);
    case MixedPrecision::float16:
      return config.set_auto_mixed_precision_cpu(Config::ON);
    case MixedPrecision::float16_on_gpus:
      return config.set_auto_mixed_precision(Config::ON);
    case MixedPrecision::tensor_float_32:
      return config.add_custom_optimizers()->set_name(std::string(tensor_float_32));
  }
}

}  // namespace

void write_options(const SessionOptions& options, tensorflow::ConfigProto& proto) {
  proto.set_allow_soft_placement(options.allow_soft_placement);
  proto.set_log_device_placement(options.log_placement);
  proto.set_isolate_session_state(options.isolate_state);
  if (options.gpus == Gpus::avoid) (*proto.mutable_device_count())["GPU"] = 0;
  tensorflow::GraphOptions& graph = *proto.mutable_graph_options();
  graph.mutable_rewrite_options()->set_disable_meta_optimizer(!options.simplify);
  if (!options.fuse)
    graph.mutable_rewrite_options()->set_remapping(tensorflow::RewriterConfig::OFF);
  if (options.recompute != Recompute::nothing) {
    graph.mutable_rewrite_options()->set_memory_optimization(
        options.recompute == Recompute::layers
            ? tensorflow::RewriterConfig::HEURISTICS
            : tensorflow::RewriterConfig::RECOMPUTATION_HEURISTICS);
  }
  if (options.mixed_precision != MixedPrecision::nothing)
    write_mixed_precision(options.mixed_precision, *graph.mutable_rewrite_options());
  if (!options.simplify_arithmetic) {
    graph.mutable_rewrite_options()->set_arithmetic_optimization(tensorflow::RewriterConfig::OFF);
  }
  graph.set_enable_bfloat16_sendrecv(options.bfloat16_edges);
  proto.set_operation_timeout_in_ms(options.timeout.count());
  for (const std::string& filter : options.device_filters) proto.add_device_filters(filter);
  if (!options.collective_leader.empty())
    proto.mutable_experimental()->set_collective_group_leader(options.collective_leader);
}

SessionOptions read_options(const tensorflow::ConfigProto& proto) {
  check(!proto.use_per_session_threads() && proto.session_inter_op_thread_pool().empty(),
        "use_per_session_threads and session_inter_op_thread_pool are not available in distributed "
        "sessions: threads "
        "belong to a task and are set where it is started");
  if (!proto.cluster_def().job().empty()) {
    fail(Code::unimplemented,
         "ConfigProto.cluster_def cannot change the cluster: it is fixed by the description that "
         "`leat up` was started with");
  }
  const tensorflow::GraphOptions& graph = proto.graph_options();
  SessionOptions options;
  options.allow_soft_placement = proto.allow_soft_placement();
  options.log_placement = proto.log_device_placement();
  const auto gpus = proto.device_count().find("GPU");
  if (gpus != proto.device_count().end() && gpus->second == 0) options.gpus = Gpus::avoid;
  options.simplify = graph.optimizer_options().opt_level() != tensorflow::OptimizerOptions::L0 &&
                     !graph.rewrite_options().disable_meta_optimizer();
  options.fuse = graph.rewrite_options().remapping() != tensorflow::RewriterConfig::OFF;
  options.recompute = read_recompute(graph.rewrite_options().memory_optimization());
  options.mixed_precision = read_mixed_precision(graph.rewrite_options());
  options.simplify_arithmetic =
      graph.rewrite_options().arithmetic_optimization() != tensorflow::RewriterConfig::OFF;
  options.bfloat16_edges = graph.enable_bfloat16_sendrecv();
  options.isolate_state = proto.isolate_session_state();
  options.device_filters.assign(proto.device_filters().begin(), proto.device_filters().end());
  options.timeout = timeout_of(proto.operation_timeout_in_ms());
  options.collective_leader = proto.experimental().collective_group_leader();
  return options;
}

void write_options(const RunOptions& options, tensorflow::RunOptions& proto) {
  proto.set_timeout_in_ms(options.timeout.count());
  proto.set_output_partition_graphs(options.partition_graphs);
  if (options.trace) proto.set_trace_level(tensorflow::RunOptions::FULL_TRACE);
}

RunOptions read_options(const tensorflow::RunOptions& proto) {
  if (!proto.debug_options().debug_tensor_watch_opts().empty()) {
    fail(Code::unimplemented, "tfdbg's tensor watches are not supported: fetch the tensor instead");
  }
  RunOptions out;
  out.timeout = timeout_of(proto.timeout_in_ms());
  out.trace = proto.trace_level() == tensorflow::RunOptions::FULL_TRACE;
  out.partition_graphs = proto.output_partition_graphs();
  return out;
}

void write_metadata(const RunMetadata& metadata, tensorflow::RunMetadata& proto) {
  if (!metadata.events.empty()) write_step_stats(metadata.events, *proto.mutable_step_stats());
  for (const std::string& graph : metadata.partition_graphs)
    proto.add_partition_graphs()->ParseFromString(graph);
}

RunMetadata read_metadata(const tensorflow::RunMetadata& proto) {
  RunMetadata out;
  for (const tensorflow::DeviceStepStats& device : proto.step_stats().dev_stats()) {
    for (const tensorflow::NodeExecStats& node : device.node_stats())
      out.events.push_back(read_event(node, device.device()));
  }
  for (const auto& graph : proto.partition_graphs())
    out.partition_graphs.push_back(graph.SerializeAsString());
  return out;
}

// A DeviceAttributes has no field for it.
const std::string problem_mark = "out of use: ";

void write_device(const DeviceDescription& device, tensorflow::DeviceAttributes& proto) {
  proto.set_name(device.name);
  proto.set_device_type(device.type);
  proto.set_memory_limit(device.memory_limit);
  proto.set_incarnation(device.incarnation);
  if (!device.problem.empty()) proto.set_physical_device_desc(problem_mark + device.problem);
}

DeviceDescription read_device(const tensorflow::DeviceAttributes& proto) {
  const std::string& text = proto.physical_device_desc();
  return {proto.name(), proto.device_type(), proto.memory_limit(), proto.incarnation(),
          text.starts_with(problem_mark) ? text.substr(problem_mark.size()) : ""};
}

}  // namespace leat
