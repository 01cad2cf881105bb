// Under which account the embedded store's server runs, and what that account may enter. As root
// that is `postgres`, since the server refuses to run as root; otherwise our own.
#pragma once

#include <filesystem>

#include "base/child_process.h"

namespace tidemark::temporal {

/// Throws 55000 when we are root and there is no account `postgres`.
base::Account FindServerAccount();

/// Options to run `command` as `account`, in `folder`, with a small environment of its own.
base::ChildProcess::Options AsServer(const base::Account& account,
                                     std::vector<std::string> command,
                                     const std::filesystem::path& folder = "/");

/// Throws 55000, naming the folder that is closed to it, unless `account` can enter `folder`.
void RequireCanEnter(const base::Account& account, const std::filesystem::path& folder);

/// A folder of mode 0700 that belongs to `account`, made when it does not exist. Throws 55000 when
/// something else is there, such as a link or a folder of somebody else.
void MakePrivateFolder(const base::Account& account, const std::filesystem::path& folder);

/// Gives a file or folder to `account`; does nothing when we are not root. Throws 58030.
void GiveTo(const base::Account& account, const std::filesystem::path& path);

}  // namespace tidemark::temporal
