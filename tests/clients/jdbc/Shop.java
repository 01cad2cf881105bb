import java.math.BigDecimal;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.OffsetDateTime;
import java.util.Map;
import java.util.Objects;
import java.util.Properties;

/** What the program knows of the shop, how it connects, and how it reports. */
final class Shop {
  record Figures(long count, BigDecimal total) {
    Figures(long count, String total) {
      this(count, new BigDecimal(total));
    }
  }

  static final String ORDERS = "SELECT count(*), sum(total) FROM orders";
  static final String AS_OF = ORDERS + " FOR SYSTEM_TIME AS OF ?";
  static final Figures ORDERS_FIRST = new Figures(10, "550.00");
  static final Figures ORDERS_SECOND = new Figures(12, "773.23");
  static final Figures ORDERS_NOW = new Figures(11, "651.11");
  static final int READINGS_FIRST = 5000;
  static final int READINGS_SECOND = 6000;
  static final int READINGS_NOW = 7;

  static final String FIRST = System.getenv("SHOP_FIRST");
  static final String SECOND = System.getenv("SHOP_SECOND");

  /** Plans that the server made for prepared statements that read orders. */
  static final String PLANS =
      """
      SELECT coalesce(sum(generic_plans), 0), coalesce(sum(custom_plans), 0)
      FROM pg_prepared_statements WHERE statement LIKE 'SELECT count%orders%'
      """;

  private static boolean failed;

  private Shop() {}

  static OffsetDateTime instant(String text) {
    return OffsetDateTime.parse(text);
  }

  /** A session with TLS; `options` are pgjdbc's properties. */
  static Connection connect(Map<String, String> options) throws SQLException {
    Properties properties = new Properties();
    properties.put("user", System.getenv("PGUSER"));
    properties.put("password", System.getenv("PGPASSWORD"));
    properties.put("sslmode", "verify-full");
    properties.put("sslrootcert", System.getenv("PGSSLROOTCERT"));
    properties.putAll(options);
    return DriverManager.getConnection(
        "jdbc:postgresql://%s:%s/%s"
            .formatted(
                System.getenv("PGHOST"), System.getenv("PGPORT"), System.getenv("PGDATABASE")),
        properties);
  }

  static Connection connect() throws SQLException {
    return connect(Map.of());
  }

  static Figures ask(Connection session, String text, Object... values) throws SQLException {
    try (PreparedStatement statement = session.prepareStatement(text)) {
      return ask(statement, values);
    }
  }

  static Figures ask(PreparedStatement statement, Object... values) throws SQLException {
    for (int i = 0; i < values.length; ++i) {
      statement.setObject(i + 1, values[i]);
    }
    try (ResultSet row = statement.executeQuery()) {
      row.next();
      return new Figures(row.getLong(1), row.getBigDecimal(2));
    }
  }

  /** Plans made once for every parameter, and plans made for one. */
  static long[] plans(Connection session) throws SQLException {
    try (Statement statement = session.createStatement();
        ResultSet row = statement.executeQuery(PLANS)) {
      row.next();
      return new long[] {row.getLong(1), row.getLong(2)};
    }
  }

  static void run(Connection session, String text) throws SQLException {
    try (Statement statement = session.createStatement()) {
      statement.execute(text);
    }
  }

  interface Check {
    void run() throws Exception;
  }

  /** Runs one check and says how it went, one line for `run`. */
  static void check(String name, Check check) {
    try {
      check.run();
      System.out.println("ok " + name);
    } catch (Exception | AssertionError error) {
      failed = true;
      error.printStackTrace(System.out);
      System.out.println("failed " + name + ": " + error.toString().replaceAll("\\s+", " "));
    }
  }

  static void finish() {
    System.exit(failed ? 1 : 0);
  }

  static void equal(Object found, Object expected) {
    if (!Objects.equals(found, expected)) {
      throw new AssertionError("found " + found + ", expected " + expected);
    }
  }

  static void atLeast(long found, long least) {
    if (found < least) throw new AssertionError("found " + found + ", expected at least " + least);
  }

  /** The error that the check must throw, with that SQLSTATE. */
  static SQLException refused(String state, Check check) throws Exception {
    try {
      check.run();
    } catch (SQLException error) {
      if (!state.equals(error.getSQLState())) throw error;
      return error;
    }
    throw new AssertionError("no " + state);
  }
}
