// A command of tidemark: adds itself with its options to the program, and is run if it was chosen.
// One file per command. Commands throw base::Error; program.cc prints it.
#pragma once

#include <functional>

#include "cli/exit_code.h"
#include "cli/invocation.h"

namespace tidemark::cli {

using Action = std::function<ExitCode(const Invocation& invocation)>;

struct Program {
  CLI::App& app;
  Invocation& invocation;
  Action chosen;
};

void AddUp(Program& program);
void AddCheck(Program& program);
void AddCapture(Program& program);
void AddFollow(Program& program);
void AddServe(Program& program);
void AddStatus(Program& program);
void AddBases(Program& program);
void AddEvidence(Program& program);
void AddVerify(Program& program);
void AddPrune(Program& program);
void AddResync(Program& program);
void AddWait(Program& program);
void AddUser(Program& program);

}  // namespace tidemark::cli
