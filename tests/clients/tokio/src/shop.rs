//! What the program knows of the shop, how it connects, and how it reports.
use std::time::{Duration, SystemTime};
use std::{env, fs, future::Future, sync::OnceLock};

use postgres_native_tls::{set_postgresql_alpn, MakeTlsConnector};
use tokio_postgres::types::ToSql;
use tokio_postgres::{config::SslNegotiation, Client, Config};

pub type Outcome<T = ()> = Result<T, Box<dyn std::error::Error>>;

pub const ORDERS: &str = "SELECT count(*), sum(total)::text FROM orders";
pub const AS_OF: &str = "SELECT count(*), sum(total)::text FROM orders FOR SYSTEM_TIME AS OF $1";
/// Plans that the server made for prepared statements that read orders.
pub const PLANS: &str = "SELECT sum(generic_plans)::int, sum(custom_plans)::int
    FROM pg_prepared_statements WHERE statement LIKE 'SELECT count%orders%'";

pub const ORDERS_FIRST: (i64, &str) = (10, "550.00");
pub const ORDERS_SECOND: (i64, &str) = (12, "773.23");
pub const ORDERS_NOW: (i64, &str) = (11, "651.11");
pub const READINGS_FIRST: usize = 5000;
pub const READINGS_SECOND: usize = 6000;
pub const READINGS_NOW: usize = 7;

pub fn variable(name: &str) -> String {
    env::var(name).unwrap_or_else(|_| panic!("{name} is not set"))
}

/// The instants as the text that came, for settings and literals.
pub fn first_text() -> String {
    variable("SHOP_FIRST")
}
pub fn second_text() -> String {
    variable("SHOP_SECOND")
}

/// "2026-01-02T03:04:05.678901Z"; the server does the arithmetic of calendars.
pub async fn instant(client: &Client, text: &str) -> Outcome<SystemTime> {
    let query = "SELECT (extract(epoch FROM $1::text::timestamptz) * 1000000)::int8";
    let microseconds: i64 = client.query_one(query, &[&text]).await?.get(0);
    Ok(SystemTime::UNIX_EPOCH + Duration::from_micros(microseconds as u64))
}

pub fn tls() -> Outcome<MakeTlsConnector> {
    let authority = native_tls::Certificate::from_pem(&fs::read(variable("PGSSLROOTCERT"))?)?;
    let mut builder = native_tls::TlsConnector::builder();
    builder
        .disable_built_in_roots(true)
        .add_root_certificate(authority);
    set_postgresql_alpn(&mut builder);
    Ok(MakeTlsConnector::new(builder.build()?))
}

pub fn configuration() -> Config {
    let mut config = Config::new();
    config
        .host(&variable("PGHOST"))
        .port(variable("PGPORT").parse().expect("a port"))
        .dbname(&variable("PGDATABASE"))
        .user(&variable("PGUSER"))
        .password(variable("PGPASSWORD"))
        .ssl_mode(tokio_postgres::config::SslMode::Require)
        .ssl_negotiation(SslNegotiation::Postgres);
    config
}

pub async fn connect(config: &Config) -> Outcome<Client> {
    let (client, connection) = config.connect(tls()?).await?;
    tokio::spawn(connection); // ends when the client is dropped
    Ok(client)
}

/// The number of orders and the sum of their totals.
pub async fn ask(
    client: &Client,
    text: &str,
    values: &[&(dyn ToSql + Sync)],
) -> Outcome<(i64, String)> {
    let row = client.query_one(text, values).await?;
    Ok((row.get(0), row.get(1)))
}

pub fn equal<A: PartialEq<B> + std::fmt::Debug, B: std::fmt::Debug>(
    found: A,
    expected: B,
) -> Outcome {
    if found == expected {
        return Ok(());
    }
    Err(format!("found {found:?}, expected {expected:?}").into())
}

pub fn is(found: (i64, String), expected: (i64, &str)) -> Outcome {
    equal((found.0, found.1.as_str()), expected)
}

/// The server's error, which must bear the code.
pub fn refused<T>(
    code: &str,
    result: Result<T, tokio_postgres::Error>,
) -> Outcome<tokio_postgres::error::DbError> {
    let error = result.err().ok_or(format!("no {code}"))?;
    let refusal = error.as_db_error().ok_or(error.to_string())?;
    equal(refusal.code().code(), code)?;
    Ok(refusal.clone())
}

static FAILED: OnceLock<()> = OnceLock::new();

/// Runs one check and says how it went, one line for `run`.
pub async fn check(name: &str, run: impl Future<Output = Outcome>) {
    match run.await {
        Ok(()) => println!("ok {name}"),
        Err(error) => {
            FAILED.get_or_init(|| ());
            let mut reason = error.to_string();
            if let Some(cause) = error.source() {
                reason = format!("{reason}: {cause}");
            }
            let words: Vec<_> = reason.split_whitespace().collect();
            println!("failed {name}: {}", words.join(" "));
        }
    }
}

pub fn finish() -> ! {
    std::process::exit(if FAILED.get().is_some() { 1 } else { 0 })
}
