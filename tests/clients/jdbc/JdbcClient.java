import java.io.StringWriter;
import java.sql.Connection;
import java.sql.DatabaseMetaData;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Savepoint;
import java.sql.Statement;
import java.time.OffsetDateTime;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.postgresql.PGConnection;
import org.postgresql.util.PSQLException;

/** pgjdbc: metadata, prepareThreshold, fetch size, CopyManager, Statement.cancel. */
public final class JdbcClient {
  private JdbcClient() {}

  static void connects() throws Exception {
    try (Connection session = Shop.connect(Map.of("channelBinding", "prefer"));
        Statement statement = session.createStatement();
        ResultSet row = statement.executeQuery("SELECT current_user, current_database()")) {
      row.next();
      Shop.equal(List.of(row.getString(1), row.getString(2)), List.of("reader", "shop"));
    }
    // Every way in which pgjdbc sends statements, the simple protocol among them.
    for (String mode : List.of("simple", "extended", "extendedForPrepared",
        "extendedCacheEverything")) {
      try (Connection session = Shop.connect(Map.of("preferQueryMode", mode))) {
        Shop.equal(Shop.ask(session, Shop.AS_OF, Shop.instant(Shop.FIRST)), Shop.ORDERS_FIRST);
      }
    }
  }

  static void connectsDirectly() throws Exception {
    try (Connection session = Shop.connect(Map.of("sslNegotiation", "direct"))) {
      Shop.equal(Shop.ask(session, Shop.ORDERS), Shop.ORDERS_NOW);
    }
  }

  static void isRefused() throws Exception {
    Shop.refused("28P01", () -> Shop.connect(Map.of("password", "wrong")).close());
    try (Connection session = Shop.connect()) {
      Shop.refused("25006", () -> Shop.run(session, "DELETE FROM orders"));
      Shop.equal(Shop.ask(session, Shop.ORDERS), Shop.ORDERS_NOW);
    }
  }

  /** The values of some columns of a result, row by row. */
  static List<List<String>> rows(ResultSet result, String... columns) throws SQLException {
    List<List<String>> rows = new ArrayList<>();
    try (result) {
      while (result.next()) {
        List<String> row = new ArrayList<>();
        for (String column : columns) row.add(result.getString(column));
        rows.add(row);
      }
    }
    return rows;
  }

  static void reflects() throws Exception {
    try (Connection session = Shop.connect()) {
      DatabaseMetaData database = session.getMetaData();
      Shop.equal(
          rows(database.getTables(null, "public", "%", new String[] {"TABLE"}), "TABLE_NAME"),
          List.of(List.of("customers"), List.of("order_lines"), List.of("orders"),
              List.of("readings")));
      Shop.equal(
          rows(database.getColumns(null, "public", "order_lines", "%"), "COLUMN_NAME",
              "TYPE_NAME", "IS_NULLABLE"),
          List.of(List.of("order_id", "int8", "NO"), List.of("line", "int4", "NO"),
              List.of("sku", "text", "NO"), List.of("quantity", "int4", "NO")));
      Shop.equal(
          rows(database.getPrimaryKeys(null, "public", "customers"), "COLUMN_NAME", "KEY_SEQ"),
          List.of(List.of("region", "1"), List.of("number", "2")));
      Shop.equal(
          rows(database.getImportedKeys(null, "public", "orders"), "FKCOLUMN_NAME",
              "PKTABLE_NAME", "PKCOLUMN_NAME", "FK_NAME"),
          List.of(List.of("region", "customers", "region", "orders_customer"),
              List.of("number", "customers", "number", "orders_customer")));
      try (PreparedStatement statement =
          session.prepareStatement("SELECT * FROM orders FOR SYSTEM_TIME AS OF ?")) {
        Shop.equal(statement.getMetaData().getColumnCount(), 9);
        Shop.equal(statement.getParameterMetaData().getParameterTypeName(1), "timestamptz");
      }
    }
  }

  static void queries() throws Exception {
    // binaryTransfer decides how pgjdbc reads what it knows in both forms.
    for (String binary : List.of("true", "false")) {
      Map<String, String> options = Map.of("binaryTransfer", binary, "prepareThreshold", "-1");
      try (Connection session = Shop.connect(options);
          PreparedStatement statement =
              session.prepareStatement(
                  "SELECT * FROM orders FOR SYSTEM_TIME AS OF ? WHERE id = ?")) {
        statement.setObject(1, Shop.instant(Shop.FIRST));
        statement.setLong(2, 1);
        try (ResultSet row = statement.executeQuery()) {
          row.next();
          Shop.equal(row.getString("state"), "paid");
          Shop.equal(row.getBigDecimal("total").toPlainString(), "10.00");
          Shop.equal(row.getObject("placed_at", OffsetDateTime.class).toInstant(),
              Shop.instant("2026-01-02T03:04:05.678901Z").toInstant());
          Shop.equal(Arrays.asList((Object[]) row.getArray("tags").getArray()),
              List.of("gift", "b c"));
          Shop.equal(row.getString("profile"), "{\"note\": \"süß €\", \"tier\": 2}");
          Shop.equal(Arrays.equals(row.getBytes("seal"), new byte[] {0, (byte) 255, 16}), true);
        }
      }
    }
  }

  static void makesMistakes() throws Exception {
    String text = "SELECT 'ü', * FROM pg_class FOR SYSTEM_TIME AS OF now()";
    try (Connection session = Shop.connect()) {
      session.setAutoCommit(false);
      Savepoint savepoint = session.setSavepoint();
      PSQLException error = (PSQLException) Shop.refused("42809", () -> Shop.run(session, text));
      Shop.equal(error.getServerErrorMessage().getMessage(),
          "relation \"pg_class\" is not system-versioned");
      String rest = text.substring(error.getServerErrorMessage().getPosition() - 1);
      Shop.equal(rest.startsWith("pg_class ") || rest.startsWith("FOR "), true);
      session.rollback(savepoint);
      Shop.equal(Shop.ask(session, Shop.ORDERS), Shop.ORDERS_NOW);
      session.commit();
    }
  }

  /** Asks for both instants in turn; pgjdbc names the statement at the fifth execution. */
  static void alternate(Connection session) throws SQLException {
    try (PreparedStatement statement = session.prepareStatement(Shop.AS_OF)) {
      for (int turn = 0; turn < 5; ++turn) {
        Shop.equal(Shop.ask(statement, Shop.instant(Shop.FIRST)), Shop.ORDERS_FIRST);
        Shop.equal(Shop.ask(statement, Shop.instant(Shop.SECOND)), Shop.ORDERS_SECOND);
      }
    }
  }

  static void prepares() throws Exception {
    for (int threshold : new int[] {5, 1, -1}) {
      Map<String, String> options = Map.of("prepareThreshold", Integer.toString(threshold));
      try (Connection session = Shop.connect(options)) {
        alternate(session);
        long[] plans = Shop.plans(session);
        Shop.atLeast(plans[0] + plans[1], threshold == 5 ? 5 : 10);
      }
    }
  }

  static void plansOnce() throws Exception {
    Map<String, String> options =
        Map.of("options", "-c plan_cache_mode=force_generic_plan", "prepareThreshold", "1");
    try (Connection session = Shop.connect(options)) {
      alternate(session);
      Shop.atLeast(Shop.plans(session)[0], 9);
    }
  }

  static void readsCursor() throws Exception {
    try (Connection session = Shop.connect();
        PreparedStatement statement =
            session.prepareStatement(
                "SELECT id FROM readings FOR SYSTEM_TIME AS OF ? ORDER BY id")) {
      session.setAutoCommit(false); // without a transaction there is no portal to fetch from
      statement.setFetchSize(700);
      for (int turn = 0; turn < 7; ++turn) { // beyond prepareThreshold too
        statement.setObject(1, Shop.instant(Shop.FIRST));
        int expected = 0;
        try (ResultSet result = statement.executeQuery()) {
          while (result.next()) Shop.equal(result.getInt(1), ++expected);
        }
        Shop.equal(expected, Shop.READINGS_FIRST);
      }
      session.commit();
    }
  }

  static long copied(Connection session, String text) throws Exception {
    StringWriter target = new StringWriter();
    long rows = session.unwrap(PGConnection.class).getCopyAPI().copyOut(text, target);
    Shop.equal(target.toString().lines().count(), rows);
    return rows;
  }

  static void copies() throws Exception {
    try (Connection session = Shop.connect()) {
      Shop.equal(copied(session, "COPY readings TO STDOUT"), (long) Shop.READINGS_NOW);
      Shop.equal(
          copied(session, "COPY (SELECT * FROM readings FOR SYSTEM_TIME AS OF '" + Shop.SECOND
              + "') TO STDOUT (FORMAT csv)"),
          (long) Shop.READINGS_SECOND);
    }
  }

  static void cancels() throws Exception {
    try (Connection session = Shop.connect();
        Statement statement = session.createStatement()) {
      CompletableFuture<Void> later =
          CompletableFuture.runAsync(
              () -> {
                try {
                  statement.cancel();
                } catch (SQLException error) {
                  throw new IllegalStateException(error);
                }
              },
              CompletableFuture.delayedExecutor(300, TimeUnit.MILLISECONDS));
      Shop.refused("57014", () -> statement.execute("SELECT pg_sleep(60)"));
      later.get(10, TimeUnit.SECONDS);
      statement.setQueryTimeout(1); // a cancel of the driver's own
      Shop.refused("57014", () -> statement.execute("SELECT pg_sleep(60)"));
      Shop.equal(Shop.ask(session, Shop.ORDERS), Shop.ORDERS_NOW);
    }
  }

  static void pin(Connection session, String at) throws SQLException {
    Shop.run(session, "SET tidemark.as_of = '" + at + "'");
  }

  static void pins() throws Exception {
    try (Connection session = Shop.connect()) {
      pin(session, Shop.FIRST);
      Shop.equal(Shop.ask(session, Shop.ORDERS), Shop.ORDERS_FIRST);
      Shop.equal(copied(session, "COPY readings TO STDOUT"), (long) Shop.READINGS_FIRST);
      Shop.equal(Shop.ask(session, Shop.AS_OF, Shop.instant(Shop.SECOND)), Shop.ORDERS_SECOND);
      session.setAutoCommit(false);
      pin(session, Shop.SECOND);
      Shop.equal(Shop.ask(session, Shop.ORDERS), Shop.ORDERS_SECOND);
      session.rollback();
      Shop.equal(Shop.ask(session, Shop.ORDERS), Shop.ORDERS_FIRST);
      Shop.run(session, "SET LOCAL tidemark.as_of = '" + Shop.SECOND + "'");
      Shop.equal(Shop.ask(session, Shop.ORDERS), Shop.ORDERS_SECOND);
      session.commit();
      Shop.equal(Shop.ask(session, Shop.ORDERS), Shop.ORDERS_FIRST);
      Shop.run(session, "RESET tidemark.as_of");
      Shop.equal(Shop.ask(session, Shop.ORDERS), Shop.ORDERS_NOW);
      session.commit();
    }
  }

  static void pinsPrepared() throws Exception {
    try (Connection session = Shop.connect();
        PreparedStatement statement = session.prepareStatement(Shop.ORDERS + " WHERE id > ?")) {
      String[] pins = {"", Shop.FIRST, Shop.SECOND, ""};
      Shop.Figures[] expected =
          {Shop.ORDERS_NOW, Shop.ORDERS_FIRST, Shop.ORDERS_SECOND, Shop.ORDERS_NOW};
      for (int i = 0; i < pins.length; ++i) {
        pin(session, pins[i]);
        for (int turn = 0; turn < 8; ++turn) {
          Shop.equal(Shop.ask(statement, 0L), expected[i]);
        }
      }
    }
  }

  static void pinsCursor() throws Exception {
    try (Connection session = Shop.connect();
        Statement statement = session.createStatement()) {
      session.setAutoCommit(false);
      pin(session, Shop.FIRST);
      statement.setFetchSize(100);
      try (ResultSet result = statement.executeQuery("SELECT id FROM readings")) {
        int found = 0;
        while (result.next()) {
          if (++found == 50) pin(session, Shop.SECOND);
        }
        Shop.equal(found, Shop.READINGS_FIRST);
      }
      Shop.equal(Shop.ask(session, Shop.ORDERS), Shop.ORDERS_SECOND);
      session.commit();
    }
  }

  static void pinsAtStartUp() throws Exception {
    Map<String, String> options = Map.of("options", "-c tidemark.as_of=" + Shop.FIRST);
    try (Connection session = Shop.connect(options)) {
      Shop.equal(Shop.ask(session, Shop.ORDERS), Shop.ORDERS_FIRST);
      pin(session, Shop.SECOND);
      Shop.equal(Shop.ask(session, Shop.ORDERS), Shop.ORDERS_SECOND);
      Shop.run(session, "RESET tidemark.as_of");
      Shop.equal(Shop.ask(session, Shop.ORDERS), Shop.ORDERS_FIRST);
    }
  }

  public static void main(String[] arguments) {
    Shop.check("connect", JdbcClient::connects);
    Shop.check("direct TLS", JdbcClient::connectsDirectly);
    Shop.check("refused", JdbcClient::isRefused);
    Shop.check("reflect", JdbcClient::reflects);
    Shop.check("query", JdbcClient::queries);
    Shop.check("mistake", JdbcClient::makesMistakes);
    Shop.check("prepared", JdbcClient::prepares);
    Shop.check("generic plan", JdbcClient::plansOnce);
    Shop.check("cursor", JdbcClient::readsCursor);
    Shop.check("copy", JdbcClient::copies);
    Shop.check("cancel", JdbcClient::cancels);
    Shop.check("pin", JdbcClient::pins);
    Shop.check("pin prepared", JdbcClient::pinsPrepared);
    Shop.check("pin cursor", JdbcClient::pinsCursor);
    Shop.check("pin at start-up", JdbcClient::pinsAtStartUp);
    Shop.finish();
  }
}
