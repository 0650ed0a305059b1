// The parts of the extension module. Each function adds one of them.
#pragma once
#include <nanobind/nanobind.h>

namespace meshard::python {

void bind_callbacks(nanobind::module_& module);
void bind_control_flow(nanobind::module_& module);
void bind_distributed(nanobind::module_& module);
void bind_dlpack(nanobind::module_& module);
void bind_files(nanobind::module_& module);
void bind_imported_programs(nanobind::module_& module);
void bind_jit(nanobind::module_& module);
void bind_layout(nanobind::module_& module);
void bind_marking(nanobind::module_& module);
void bind_mesh(nanobind::module_& module);
void bind_nn(nanobind::module_& module);
void bind_optim(nanobind::module_& module);
void bind_pipeline(nanobind::module_& module);
void bind_plan(nanobind::module_& module);
void bind_processes(nanobind::module_& module);
void bind_reports(nanobind::module_& module);
void bind_runtime(nanobind::module_& module);
void bind_sharding(nanobind::module_& module);
void bind_shards(nanobind::module_& module);
void bind_topology(nanobind::module_& module);
void bind_traces(nanobind::module_& module);
void bind_transforms(nanobind::module_& module);

}  // namespace meshard::python
