// node-postgres, with its companions for cursors and COPY.
import assert from 'node:assert/strict'
import fs from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'

import pg from 'pg'
import copyStreams from 'pg-copy-streams'
import Cursor from 'pg-cursor'

import {
  check, first, order1, orders, ordersFirst, ordersNow, ordersSecond, plans, readings, refused,
  second
} from './checks.mjs'

const asOf = `${orders} FOR SYSTEM_TIME AS OF $1`
const ssl = { ca: fs.readFileSync(process.env.PGSSLROOTCERT, 'utf8'), rejectUnauthorized: true }

// Runs `use` with a session of its own; host, port, database, user and password come from PG*.
async function withSession(use, options = {}) {
  const session = new pg.Client({ ssl, ...options })
  await session.connect()
  try {
    return await use(session)
  } finally {
    await session.end()
  }
}

const row = async (session, query, values) =>
  (await session.query({ ...(query.text ? query : { text: query }), values, rowMode: 'array' }))
    .rows[0]

const inTransaction = async (session, use, end = 'COMMIT') => {
  await session.query('BEGIN')
  await use()
  await session.query(end)
}

await check('connect', () => withSession(async (session) => {
  assert.equal(session.connection.stream.encrypted, true)
  assert.equal(session.connection.stream.authorized, true)
  assert.deepEqual(await row(session, 'SELECT current_user, current_database()'),
    ['reader', 'shop'])
}))

await check('direct TLS', () => withSession(async (session) => {
  assert.equal(session.connection.stream.alpnProtocol, 'postgresql')
  assert.deepEqual(await row(session, orders), ordersNow)
}, { sslnegotiation: 'direct' }))

await check('refused', async () => {
  await refused('28P01', withSession(() => {}, { password: 'wrong' }))
  await withSession(async (session) => {
    await refused('25006', session.query('DELETE FROM orders WHERE id = $1', [1]))
    assert.deepEqual(await row(session, orders), ordersNow)
  })
})

await check('reflect', () => withSession(async (session) => {
  const { rows } = await session.query(
    `SELECT column_name AS name, data_type AS type FROM information_schema.columns
     WHERE table_name = 'order_lines' AND table_schema = 'public' ORDER BY ordinal_position`)
  assert.deepEqual(rows, [
    { name: 'order_id', type: 'bigint' }, { name: 'line', type: 'integer' },
    { name: 'sku', type: 'text' }, { name: 'quantity', type: 'integer' }])
  const keys = await session.query(
    `SELECT pg_get_constraintdef(oid) AS text FROM pg_constraint
     WHERE conrelid = 'order_lines'::regclass AND contype IN ('p', 'f') ORDER BY contype DESC`)
  assert.equal(keys.rows[0].text, 'PRIMARY KEY (order_id, line)')
  assert.match(keys.rows[1].text, /FOREIGN KEY \(order_id\) REFERENCES orders\(id\)/)
  const { fields } = await session.query('SELECT * FROM orders FOR SYSTEM_TIME AS OF $1', [first])
  assert.deepEqual(fields.map((field) => field.name), Object.keys(order1))
}))

await check('query', () => withSession(async (session) => {
  const before = await session.query(
    'SELECT * FROM orders FOR SYSTEM_TIME AS OF $1 WHERE id = $2', [first, 1])
  assert.deepEqual(before.rows[0], order1)
  // Several statements in one string.
  const results = await session.query(
    `SELECT state FROM orders FOR SYSTEM_TIME AS OF '${first}' WHERE id = 1;
     SELECT state FROM orders WHERE id = 1`)
  assert.deepEqual(results.map((result) => result.rows[0].state), ['paid', 'shipped'])
}))

await check('mistake', () => withSession(async (session) => {
  const text = "SELECT 'ü', * FROM pg_class FOR SYSTEM_TIME AS OF now()"
  await inTransaction(session, async () => {
    const error = await refused('42809', session.query(text))
    assert.match(error.message, /"pg_class" is not system-versioned/)
    assert.match(text.slice(error.position - 1), /^(pg_class|FOR) /)
    await refused('25P02', session.query(orders))
  }, 'ROLLBACK')
  assert.deepEqual(await row(session, orders), ordersNow)
}))

// A statement with a name is parsed once and then only bound.
async function alternate(session) {
  for (let turn = 0; turn < 5; ++turn) {
    assert.deepEqual(await row(session, { name: 'as of', text: asOf }, [first]), ordersFirst)
    assert.deepEqual(await row(session, { name: 'as of', text: asOf }, [second]), ordersSecond)
  }
}

await check('prepared', () => withSession(async (session) => {
  await alternate(session)
  const { generic, custom } = (await session.query(plans)).rows[0]
  assert.equal(generic + custom, 10)
  const instants = Array.from({ length: 10 }, (_, turn) => (turn % 2 ? second : first))
  const answers = await Promise.all(instants.map((instant) => row(session, asOf, [instant])))
  assert.deepEqual(answers, instants.map((one) => (one === first ? ordersFirst : ordersSecond)))
}))

await check('generic plan', () => withSession(async (session) => {
  await alternate(session)
  assert.equal((await session.query(plans)).rows[0].generic, 10)
}, { options: '-c plan_cache_mode=force_generic_plan' }))

await check('cursor', () => withSession(async (session) => {
  const cursor = session.query(new Cursor(
    'SELECT id FROM readings FOR SYSTEM_TIME AS OF $1 ORDER BY id', [first]))
  const found = []
  for (;;) {
    const page = await cursor.read(700)
    if (page.length === 0) break
    found.push(...page.map((one) => one.id))
  }
  await cursor.close()
  assert.deepEqual(found, Array.from({ length: readings.first }, (_, n) => n + 1))
}))

async function copied(session, statement) {
  const chunks = []
  for await (const chunk of session.query(copyStreams.to(statement))) chunks.push(chunk)
  return Buffer.concat(chunks).toString().split('\n').length - 1
}

await check('copy', () => withSession(async (session) => {
  assert.equal(await copied(session, 'COPY readings TO STDOUT'), readings.now)
  assert.equal(await copied(session,
    `COPY (SELECT * FROM readings FOR SYSTEM_TIME AS OF '${second}') TO STDOUT WITH CSV`),
  readings.second)
}))

await check('cancel', () => withSession(async (session) => {
  const query = new pg.Query('SELECT pg_sleep(60)')
  const ended = new Promise((resolve, reject) => query.on('error', reject).on('end', resolve))
  session.query(query)
  await sleep(300)
  const canceller = new pg.Client()
  const { stream } = canceller.connection
  const acted = new Promise((resolve) => stream.once('close', resolve))
  canceller.cancel(session, query)
  await refused('57014', ended)
  await acted // the server may signal twice; what is asked before it has hung up may be hit, too
  assert.deepEqual(await row(session, orders), ordersNow)
}))

const pin = (session, instant) =>
  session.query("SELECT set_config('tidemark.as_of', $1, false)", [instant])

await check('pin', () => withSession(async (session) => {
  await session.query(`SET tidemark.as_of = '${first}'`)
  assert.deepEqual(await row(session, orders), ordersFirst)
  assert.equal(await copied(session, 'COPY readings TO STDOUT'), readings.first)
  assert.deepEqual(await row(session, asOf, [second]), ordersSecond)
  await inTransaction(session, async () => {
    await pin(session, second)
    assert.deepEqual(await row(session, orders), ordersSecond)
  }, 'ROLLBACK')
  assert.deepEqual(await row(session, orders), ordersFirst)
  await inTransaction(session, async () => {
    await session.query(`SET LOCAL tidemark.as_of = '${second}'`)
    assert.deepEqual(await row(session, orders), ordersSecond)
  })
  assert.deepEqual(await row(session, orders), ordersFirst)
  await session.query('RESET tidemark.as_of')
  assert.deepEqual(await row(session, orders), ordersNow)
}))

await check('pin prepared', () => withSession(async (session) => {
  const statement = { name: 'from zero', text: `${orders} WHERE id > $1` }
  for (const [instant, expected] of [['', ordersNow], [first, ordersFirst],
    [second, ordersSecond], ['', ordersNow]]) {
    await pin(session, instant)
    for (let turn = 0; turn < 8; ++turn) {
      assert.deepEqual(await row(session, statement, [0]), expected)
    }
  }
}))

await check('pin cursor', () => withSession(async (session) => {
  await inTransaction(session, async () => {
    await pin(session, first)
    await session.query('DECLARE pages CURSOR FOR SELECT id FROM readings')
    assert.equal((await session.query('FETCH 100 FROM pages')).rows.length, 100)
    await pin(session, second)
    assert.deepEqual(await row(session, 'SELECT count(*)::int FROM readings'), [readings.second])
    assert.equal((await session.query('FETCH ALL FROM pages')).rows.length, readings.first - 100)
  })
}))

await check('pin at start-up', () => withSession(async (session) => {
  assert.deepEqual(await row(session, orders), ordersFirst)
  await pin(session, second)
  assert.deepEqual(await row(session, orders), ordersSecond)
  await session.query('DISCARD ALL')
  assert.deepEqual(await row(session, orders), ordersFirst)
}, { options: `-c tidemark.as_of=${first}` }))
