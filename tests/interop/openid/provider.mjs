// OpenID provider with its own development login form: node provider.mjs PORT CONSOLE
// Any name and password log in; groups are those behind a plus sign: ann+job-admins.
import Provider from 'oidc-provider'

const [port, console_] = process.argv.slice(2)
const client = {
  redirect_uris: [`${console_}/sign-on/callback`],
  post_logout_redirect_uris: [`${console_}/toLogin`],
  grant_types: ['authorization_code'],
  response_types: ['code'],
}
const provider = new Provider(`http://127.0.0.1:${port}`, {
  clients: [
    { ...client, client_id: 'xxl-job', client_secret: 'a secret with + and %20' },
    { ...client, client_id: 'xxl-job-public', token_endpoint_auth_method: 'none' },
  ],
  claims: { openid: ['sub'], profile: ['preferred_username', 'groups'] },
  cookies: { keys: ['for tests only'] },
  async findAccount(_ctx, id) {
    const [name, ...groups] = id.split('+')
    return { accountId: id, claims: () => ({ sub: id, preferred_username: name, groups }) }
  },
})
provider.listen(Number(port), '127.0.0.1', () => console.log('ready'))
