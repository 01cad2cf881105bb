//! tokio-postgres: prepared statements, portals, pipelining by polling several queries at once.
mod shop;

use std::time::{Duration, SystemTime};

use futures_util::{future::try_join_all, TryStreamExt};
use serde_json::json;
use shop::*;
use tokio_postgres::types::{FromSql, Kind, Type};
use tokio_postgres::{config::SslNegotiation, error::ErrorPosition, Client, SimpleQueryMessage};

/// order_state, for which no type of Rust is made.
struct Label(String);

impl<'a> FromSql<'a> for Label {
    fn from_sql(kind: &Type, raw: &'a [u8]) -> Outcome2<Self> {
        match kind.kind() {
            Kind::Enum(labels) if labels == &["new", "paid", "shipped"] => {}
            other => return Err(format!("{other:?} is not order_state").into()),
        }
        Ok(Label(std::str::from_utf8(raw)?.to_string()))
    }
    fn accepts(kind: &Type) -> bool {
        kind.name() == "order_state"
    }
}
type Outcome2<T> = Result<T, Box<dyn std::error::Error + Sync + Send>>;

async fn session() -> Outcome<Client> {
    connect(&configuration()).await
}

async fn connects() -> Outcome {
    // The configuration requires TLS, and the connector trusts our authority only.
    let client = session().await?;
    let row = client
        .query_one("SELECT current_user::text, current_database()::text", &[])
        .await?;
    equal(
        (row.get::<_, &str>(0), row.get::<_, &str>(1)),
        ("reader", "shop"),
    )
}

async fn connects_directly() -> Outcome {
    let client = connect(configuration().ssl_negotiation(SslNegotiation::Direct)).await?;
    is(ask(&client, ORDERS, &[]).await?, ORDERS_NOW)
}

async fn is_refused() -> Outcome {
    refused(
        "28P01",
        configuration().password("wrong").connect(tls()?).await,
    )?;
    let client = session().await?;
    refused(
        "25006",
        client
            .execute("DELETE FROM orders WHERE id = $1", &[&1i64])
            .await,
    )?;
    is(ask(&client, ORDERS, &[]).await?, ORDERS_NOW)
}

async fn reflects() -> Outcome {
    let client = session().await?;
    let statement = client
        .prepare("SELECT * FROM orders FOR SYSTEM_TIME AS OF $1")
        .await?;
    equal(statement.params(), [Type::TIMESTAMPTZ])?;
    let columns: Vec<_> = statement
        .columns()
        .iter()
        .map(|column| format!("{} {}", column.name(), column.type_().name()))
        .collect();
    equal(
        columns.join(", "),
        "id int8, region text, number int4, state order_state, total numeric, \
         placed_at timestamptz, tags _text, profile jsonb, seal bytea",
    )?;
    let keys = client
        .query(
            "SELECT pg_get_constraintdef(oid) FROM pg_constraint
             WHERE conrelid = 'order_lines'::regclass AND contype IN ('p', 'f')
             ORDER BY contype DESC",
            &[],
        )
        .await?;
    equal(keys[0].get::<_, &str>(0), "PRIMARY KEY (order_id, line)")?;
    let foreign: &str = keys[1].get(0);
    equal(
        foreign.contains("FOREIGN KEY (order_id) REFERENCES orders(id)"),
        true,
    )
}

async fn queries() -> Outcome {
    let client = session().await?;
    let first = instant(&client, &first_text()).await?;
    let row = client
        .query_one(
            "SELECT state, placed_at, tags, profile, seal, total::text
             FROM orders FOR SYSTEM_TIME AS OF $1 WHERE id = $2",
            &[&first, &1i64],
        )
        .await?;
    equal(row.get::<_, Label>(0).0, "paid")?;
    let placed_at = instant(&client, "2026-01-02T03:04:05.678901Z").await?;
    equal(row.get::<_, SystemTime>(1), placed_at)?;
    equal(row.get::<_, Vec<String>>(2), ["gift", "b c"])?;
    equal(
        row.get::<_, serde_json::Value>(3),
        json!({"note": "süß €", "tier": 2}),
    )?;
    equal(row.get::<_, &[u8]>(4), [0u8, 255, 16])?;
    equal(row.get::<_, &str>(5), "10.00")
}

async fn makes_mistakes() -> Outcome {
    let client = session().await?;
    let text = "SELECT 'ü', * FROM pg_class FOR SYSTEM_TIME AS OF now()";
    client.batch_execute("BEGIN").await?;
    let refusal = refused("42809", client.query(text, &[]).await)?;
    equal(
        refusal.message(),
        "relation \"pg_class\" is not system-versioned",
    )?;
    let Some(ErrorPosition::Original(position)) = refusal.position() else {
        return Err("the error has no position".into());
    };
    let rest: String = text.chars().skip(*position as usize - 1).collect();
    equal(
        rest.starts_with("pg_class ") || rest.starts_with("FOR "),
        true,
    )?;
    client.batch_execute("ROLLBACK").await?;
    is(ask(&client, ORDERS, &[]).await?, ORDERS_NOW)
}

/// Asks for both instants in turn, twenty times; returns how often a generic and a custom plan ran.
async fn alternate(client: &Client) -> Result<(i32, i32), Box<dyn std::error::Error>> {
    let statement = client.prepare(AS_OF).await?;
    let first = instant(client, &first_text()).await?;
    let second = instant(client, &second_text()).await?;
    for _ in 0..5 {
        for (at, expected) in [(first, ORDERS_FIRST), (second, ORDERS_SECOND)] {
            let row = client.query_one(&statement, &[&at]).await?;
            is((row.get(0), row.get(1)), expected)?;
        }
    }
    // Pipelined: all are sent before the first answer is read.
    let instants = [first, second];
    let answers = try_join_all((0..10).map(|turn| {
        let (statement, at) = (&statement, &instants[turn % 2]);
        async move { client.query_one(statement, &[at]).await }
    }))
    .await?;
    for (turn, row) in answers.iter().enumerate() {
        is(
            (row.get(0), row.get(1)),
            [ORDERS_FIRST, ORDERS_SECOND][turn % 2],
        )?;
    }
    let plans = client.query_one(PLANS, &[]).await?;
    Ok((plans.get(0), plans.get(1)))
}

async fn prepares() -> Outcome {
    let (generic, custom) = alternate(&session().await?).await?;
    equal(generic + custom, 20)
}

async fn plans_once() -> Outcome {
    let forced = "-c plan_cache_mode=force_generic_plan";
    let client = connect(configuration().options(forced)).await?;
    equal(alternate(&client).await?, (20, 0))
}

async fn reads_cursor() -> Outcome {
    let mut client = session().await?;
    let first = instant(&client, &first_text()).await?;
    let transaction = client.transaction().await?;
    let text = "SELECT id FROM readings FOR SYSTEM_TIME AS OF $1 ORDER BY id";
    let portal = transaction.bind(text, &[&first]).await?;
    let mut found: Vec<i32> = Vec::new();
    loop {
        let page = transaction.query_portal(&portal, 700).await?;
        if page.is_empty() {
            break;
        }
        found.extend(page.iter().map(|row| row.get::<_, i32>(0)));
    }
    equal(found, (1..=READINGS_FIRST as i32).collect::<Vec<_>>())
}

async fn copied(client: &Client, text: &str) -> Outcome<usize> {
    let chunks = Box::pin(client.copy_out(text).await?);
    let bytes = chunks
        .try_fold(Vec::new(), |mut all, chunk| async move {
            all.extend_from_slice(&chunk);
            Ok(all)
        })
        .await?;
    Ok(bytes.iter().filter(|&&byte| byte == b'\n').count())
}

async fn copies() -> Outcome {
    let client = session().await?;
    equal(
        copied(&client, "COPY readings TO STDOUT").await?,
        READINGS_NOW,
    )?;
    let text = format!(
        "COPY (SELECT * FROM readings FOR SYSTEM_TIME AS OF '{}') TO STDOUT",
        second_text()
    );
    equal(copied(&client, &text).await?, READINGS_SECOND)
}

async fn cancels() -> Outcome {
    let client = session().await?;
    let token = client.cancel_token();
    let canceling = tokio::spawn(async move {
        tokio::time::sleep(Duration::from_millis(300)).await;
        let connector = tls().map_err(|error| error.to_string())?;
        token
            .cancel_query(connector)
            .await
            .map_err(|error| error.to_string())
    });
    refused("57014", client.batch_execute("SELECT pg_sleep(60)").await)?;
    canceling.await??;
    is(ask(&client, ORDERS, &[]).await?, ORDERS_NOW)
}

async fn pin(client: &Client, at: &str) -> Outcome {
    client
        .execute("SELECT set_config('tidemark.as_of', $1, false)", &[&at])
        .await?;
    Ok(())
}

async fn pins() -> Outcome {
    let client = session().await?;
    let second = instant(&client, &second_text()).await?;
    client
        .batch_execute(&format!("SET tidemark.as_of = '{}'", first_text()))
        .await?;
    is(ask(&client, ORDERS, &[]).await?, ORDERS_FIRST)?;
    equal(
        copied(&client, "COPY readings TO STDOUT").await?,
        READINGS_FIRST,
    )?;
    is(ask(&client, AS_OF, &[&second]).await?, ORDERS_SECOND)?;
    for end in ["ROLLBACK", "COMMIT"] {
        let local = format!("BEGIN; SET LOCAL tidemark.as_of = '{}'", second_text());
        client.batch_execute(&local).await?;
        is(ask(&client, ORDERS, &[]).await?, ORDERS_SECOND)?;
        client.batch_execute(end).await?;
        is(ask(&client, ORDERS, &[]).await?, ORDERS_FIRST)?;
    }
    client.batch_execute("RESET tidemark.as_of").await?;
    is(ask(&client, ORDERS, &[]).await?, ORDERS_NOW)
}

async fn pins_prepared() -> Outcome {
    let client = session().await?;
    let statement = client.prepare(&format!("{ORDERS} WHERE id > $1")).await?;
    let (first, second) = (first_text(), second_text());
    for (at, expected) in [
        ("", ORDERS_NOW),
        (first.as_str(), ORDERS_FIRST),
        (second.as_str(), ORDERS_SECOND),
        ("", ORDERS_NOW),
    ] {
        pin(&client, at).await?;
        for _ in 0..8 {
            let row = client.query_one(&statement, &[&0i64]).await?;
            is((row.get(0), row.get(1)), expected)?;
        }
    }
    Ok(())
}

async fn pins_cursor() -> Outcome {
    let mut client = session().await?;
    pin(&client, &first_text()).await?;
    let transaction = client.transaction().await?;
    let portal = transaction.bind("SELECT id FROM readings", &[]).await?;
    equal(transaction.query_portal(&portal, 100).await?.len(), 100)?;
    let text = format!("SET tidemark.as_of = '{}'", second_text());
    transaction.batch_execute(&text).await?;
    let answer = transaction
        .simple_query("SELECT count(*) FROM readings")
        .await?;
    let counted = answer.iter().find_map(|message| match message {
        SimpleQueryMessage::Row(row) => row.get(0),
        _ => None,
    });
    equal(counted, Some(READINGS_SECOND.to_string().as_str()))?;
    equal(
        transaction.query_portal(&portal, 0).await?.len(),
        READINGS_FIRST - 100,
    )
}

async fn pins_at_start_up() -> Outcome {
    let client =
        connect(configuration().options(format!("-c tidemark.as_of={}", first_text()))).await?;
    is(ask(&client, ORDERS, &[]).await?, ORDERS_FIRST)?;
    pin(&client, &second_text()).await?;
    is(ask(&client, ORDERS, &[]).await?, ORDERS_SECOND)?;
    client.batch_execute("RESET tidemark.as_of").await?;
    is(ask(&client, ORDERS, &[]).await?, ORDERS_FIRST)
}

fn main() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    runtime.expect("a runtime").block_on(async {
        check("connect", connects()).await;
        check("direct TLS", connects_directly()).await;
        check("refused", is_refused()).await;
        check("reflect", reflects()).await;
        check("query", queries()).await;
        check("mistake", makes_mistakes()).await;
        check("prepared", prepares()).await;
        check("generic plan", plans_once()).await;
        check("cursor", reads_cursor()).await;
        check("copy", copies()).await;
        check("cancel", cancels()).await;
        check("pin", pins()).await;
        check("pin prepared", pins_prepared()).await;
        check("pin cursor", pins_cursor()).await;
        check("pin at start-up", pins_at_start_up()).await;
    });
    finish()
}
