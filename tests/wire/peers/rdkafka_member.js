// A member with node-rdkafka, for tests: it polls, and does what the lines of its standard input ask.
//
//     node rdkafka_member.js ADDRESS GROUP TOPIC SESSION_MS
//
// KCOORD_TOKEN is the password. Lines and answers are those of java_member/Member.java.

const readline = require('readline')
const Kafka = require('node-rdkafka')

const [address, group, topic, session] = process.argv.slice(2)
const ASK_MS = 30000
const settings = {
  'bootstrap.servers': address,
  'group.id': group,
  'security.protocol': 'sasl_plaintext',
  'sasl.mechanism': 'PLAIN',
  'sasl.username': 'any',
  'sasl.password': process.env.KCOORD_TOKEN,
  'session.timeout.ms': Number(session),
  'heartbeat.interval.ms': 500,
  'enable.auto.commit': false,
  'rebalance_cb': true
}
const consumer = new Kafka.KafkaConsumer(settings, { 'auto.offset.reset': 'earliest' })

const text = (partitions) => partitions.map((one) => one.partition).join(' ')

const committed = (partition) => new Promise((resolve, reject) => {
  consumer.committed([{ topic, partition }], ASK_MS, (error, found) => {
    if (error) reject(error)
    else resolve(found[0].offset === undefined ? '-1' : String(found[0].offset))
  })
})

async function answer(words) {
  const partition = Number(words[1])
  switch (words[0]) {
    case 'numbers':
      return text(consumer.assignments())
    case 'commit':
      consumer.commitSync({ topic, partition, offset: Number(words[2]) })
      return ''
    case 'committed':
      return committed(partition)
  }
  throw new Error(`nobody knows ${words[0]}`)
}

async function serve() {
  for await (const line of readline.createInterface({ input: process.stdin })) {
    if (line === 'close') break
    try {
      console.log('= ' + (await answer(line.split(' '))))
    } catch (error) {
      console.log('! ' + error)
    }
  }
  consumer.on('disconnected', () => {
    console.log('= closed')
    process.exit(0)
  })
  consumer.disconnect()
}

consumer.on('rebalance', (event, partitions) => {
  if (event.code === Kafka.CODES.ERRORS.ERR__REVOKE_PARTITIONS) console.log('revoked', text(partitions))
})
consumer.on('event.error', (error) => console.error(error))
consumer.on('ready', () => {
  consumer.subscribe([topic])
  consumer.consume()
  serve()
})
consumer.connect()
