#include "cli/program.h"

int main(int argc, char** argv) { return tidemark::cli::Run(argc, argv); }
