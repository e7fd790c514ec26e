// Six handlers on the npm package xxl-job: node executor.mjs ADMIN TOKEN APPNAME PORT FOLDER; run in FOLDER, its logs go there.
import express from 'express'
import { createXxlJobExecutor } from 'xxl-job'

const [admin, token, appname, port] = process.argv.slice(2)
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms))

const jobHandlers = new Map(Object.entries({
  async ok(logger, _request, param) {
    logger.info(`hello ${param}`)
    return 'done'
  },
  async fail(logger) {
    logger.info('about to fail')
    throw new Error('told to fail')
  },
  async sleep(logger, request, param) {
    logger.info(`asleep for ${param} s`)
    const until = Date.now() + Number(param) * 1000
    while (Date.now() < until) {
      if (request.isKill()) return // the library has told the result already
      await pause(20)
    }
    return 'slept'
  },
  async shard(logger, request) {
    const text = `shard ${request.broadcastIndex} of ${request.broadcastTotal}`
    logger.info(text)
    return text
  },
  async lines(logger) {
    for (let number = 1; number <= 200; number++) logger.info(`line ${number} of 200`)
    return 'done'
  },
  async echo(_logger, _request, param) {
    return param
  },
}))

const app = express()
app.use(express.json())
app.listen(Number(port), '127.0.0.1', () => {
  createXxlJobExecutor({
    app,
    jobHandlers,
    accessToken: token,
    baseUrl: `http://127.0.0.1:${port}`,
    executorKey: appname,
    scheduleCenterUrl: admin,
    logStorage: 'local',
  }).initialization()
})
