#include "tests/gateway/sql_client.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>

namespace tidemark::tests {
namespace {

std::string Field(const PGresult* result, int code) {
  const char* text = PQresultErrorField(result, code);
  return text == nullptr ? std::string() : std::string(text);
}

std::string Hex(std::string_view bytes) {
  std::string text;
  for (const char c : bytes) text += fmt::format("{:02x}", static_cast<unsigned char>(c));
  return text;
}

std::string Rows(const PGresult* result) {
  std::string rows;
  for (int i = 0; i < PQntuples(result); ++i) {
    for (int j = 0; j < PQnfields(result); ++j) {
      const std::string_view value(PQgetvalue(result, i, j),
                                   static_cast<size_t>(PQgetlength(result, i, j)));
      rows += j == 0 ? "" : "|";
      rows += PQgetisnull(result, i, j) != 0 ? "NULL"
              : PQfformat(result, j) == 1    ? Hex(value)
                                             : std::string(value);
    }
    rows += '\n';
  }
  return rows;
}

struct Pointers {
  explicit Pointers(const SqlClient::Parameters& parameters) {
    for (const auto& parameter : parameters) {
      values.push_back(parameter ? parameter->c_str() : nullptr);
    }
  }
  int size() const { return static_cast<int>(values.size()); }
  std::vector<const char*> values;
};

}  // namespace

std::string Answer::Outcome() const {
  return state.empty() ? "ok" : fmt::format("{} {} {}", state, position, message);
}

SqlClient::SqlClient(const std::string& dsn) : connection_(PQconnectdb(dsn.c_str())) {
  EXPECT_EQ(PQstatus(get()), CONNECTION_OK) << PQerrorMessage(get());
  PQsetNoticeProcessor(
      get(), [](void*, const char*) {}, nullptr);
}

Answer SqlClient::Take(PGresult* result) {
  const std::unique_ptr<PGresult, void (*)(PGresult*)> owner(result, PQclear);
  Answer answer;
  if (result == nullptr) {
    answer.state = "none";
    answer.message = PQerrorMessage(get());
    return answer;
  }
  answer.rows = Rows(result);
  const bool rows = PQresultStatus(result) == PGRES_TUPLES_OK;
  for (int j = 0; rows && j < PQnfields(result); ++j) {
    answer.columns += (j == 0 ? "" : ",") + std::string(PQfname(result, j));
  }
  answer.tag = PQcmdStatus(result);
  const ExecStatusType status = PQresultStatus(result);
  if (status == PGRES_PIPELINE_ABORTED) answer.state = "aborted";
  if (status == PGRES_FATAL_ERROR) {
    answer.state = Field(result, PG_DIAG_SQLSTATE);
    if (answer.state.empty()) answer.state = "lost";
    answer.message = Field(result, PG_DIAG_MESSAGE_PRIMARY);
    answer.detail = Field(result, PG_DIAG_MESSAGE_DETAIL);
    answer.hint = Field(result, PG_DIAG_MESSAGE_HINT);
    answer.position = std::atoi(Field(result, PG_DIAG_STATEMENT_POSITION).c_str());
  }
  if (status == PGRES_COPY_OUT) {
    char* chunk = nullptr;
    for (int n = PQgetCopyData(get(), &chunk, 0); n >= 0; n = PQgetCopyData(get(), &chunk, 0)) {
      answer.rows.append(chunk, static_cast<size_t>(n));
      PQfreemem(chunk);
    }
    Answer end;
    while (PGresult* next = PQgetResult(get())) end = Take(next);
    end.rows = answer.rows;
    return end;
  }
  switch (PQtransactionStatus(get())) {
    case PQTRANS_IDLE:
      answer.transaction = 'I';
      break;
    case PQTRANS_INTRANS:
      answer.transaction = 'T';
      break;
    case PQTRANS_INERROR:
      answer.transaction = 'E';
      break;
    default:
      break;
  }
  return answer;
}

Answer SqlClient::Simple(const std::string& sql) { return Take(PQexec(get(), sql.c_str())); }

Answer SqlClient::Extended(const std::string& sql, const Parameters& parameters, bool binary) {
  Pointers p(parameters);
  return Take(PQexecParams(get(), sql.c_str(), p.size(), nullptr, p.values.data(), nullptr, nullptr,
                           binary ? 1 : 0));
}

Answer SqlClient::ExtendedBinary(const std::string& sql, Oid type, const std::string& bytes) {
  const char* value = bytes.data();
  const int length = static_cast<int>(bytes.size()), format = 1;
  return Take(PQexecParams(get(), sql.c_str(), 1, &type, &value, &length, &format, 1));
}

Answer SqlClient::Prepare(const std::string& name, const std::string& sql) {
  return Take(PQprepare(get(), name.c_str(), sql.c_str(), 0, nullptr));
}

Answer SqlClient::Run(const std::string& name, const Parameters& parameters, bool binary) {
  Pointers p(parameters);
  return Take(PQexecPrepared(get(), name.c_str(), p.size(), p.values.data(), nullptr, nullptr,
                             binary ? 1 : 0));
}

std::vector<Oid> SqlClient::ParametersOf(const std::string& name) {
  PGresult* result = PQdescribePrepared(get(), name.c_str());
  std::vector<Oid> types;
  for (int i = 0; i < PQnparams(result); ++i) types.push_back(PQparamtype(result, i));
  PQclear(result);
  return types;
}

std::vector<Answer> SqlClient::Pipeline(
    const std::vector<std::pair<std::string, Parameters>>& statements) {
  EXPECT_EQ(PQenterPipelineMode(get()), 1);
  for (const auto& [sql, parameters] : statements) {
    Pointers p(parameters);
    EXPECT_EQ(PQsendQueryParams(get(), sql.c_str(), p.size(), nullptr, p.values.data(), nullptr,
                                nullptr, 0),
              1)
        << PQerrorMessage(get());
  }
  EXPECT_EQ(PQpipelineSync(get()), 1);
  std::vector<Answer> answers;
  for (size_t i = 0; i <= statements.size(); ++i) {
    answers.push_back(Take(PQgetResult(get())));
    if (i < statements.size()) PQclear(PQgetResult(get()));
  }
  EXPECT_EQ(PQexitPipelineMode(get()), 1) << PQerrorMessage(get());
  return answers;
}

}  // namespace tidemark::tests
