// A login issuer: the package `oidc-provider` over TLS, with members who have logged in already.
//
// Beside it, on a port of its own, stands what no issuer offers: tokens for the asking, other keys,
// and how often each path was asked for. One line on standard output says where both are.

import { generateKeyPairSync, randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import http from 'node:http';
import https from 'node:https';
import { pathToFileURL } from 'node:url';

const [module, folder, port] = process.argv.slice(2);
const { default: Provider } = await import(pathToFileURL(module));

const file = (name) => readFileSync(`${folder}/${name}`);
const [ca, cert, key] = ['ca.pem', 'cert.pem', 'key.pem'].map(file);
const CLIENT = { client_id: 'control-plane', client_secret: randomUUID() };

/** A new key for each algorithm. */
function keys() {
  const of = (alg, type, options) => {
    const { privateKey } = generateKeyPairSync(type, options);
    return { ...privateKey.export({ format: 'jwk' }), alg, use: 'sig', kid: randomUUID() };
  };
  return [
    of('RS256', 'rsa', { modulusLength: 2048 }),
    of('PS256', 'rsa', { modulusLength: 2048 }),
    of('ES256', 'ec', { namedCurve: 'P-256' }),
    of('ES384', 'ec', { namedCurve: 'P-384' }),
    of('EdDSA', 'ed25519'),
  ];
}

/** What a token for a resource is like stands in the resource's own URI. */
function resource({ audiences, alg = 'RS256', life = 300 }) {
  const query = new URLSearchParams({ alg, life });
  for (const audience of audiences) query.append('audience', audience);
  return `https://resource.example/?${query}`;
}

function provider(issuer) {
  const made = new Provider(issuer, {
    clients: [{
      ...CLIENT,
      grant_types: ['authorization_code', 'refresh_token', 'client_credentials'],
      redirect_uris: ['https://client.example/callback'],
      token_endpoint_auth_method: 'client_secret_post',
    }],
    cookies: { keys: [randomUUID()] },
    features: {
      clientCredentials: { enabled: true },
      devInteractions: { enabled: false },
      resourceIndicators: {
        enabled: true,
        getResourceServerInfo(ctx, uri) {
          const query = new URL(uri).searchParams;
          return {
            scope: 'runs',
            audience: query.getAll('audience')[0],
            accessTokenFormat: 'jwt',
            accessTokenTTL: Number(query.get('life')),
            jwt: { sign: { alg: query.get('alg') } },
          };
        },
        useGrantedResource: () => true,
      },
      revocation: { enabled: true },
    },
    findAccount: (ctx, accountId) => ({ accountId, claims: () => ({ sub: accountId }) }),
    formats: {
      customizers: {
        // A resource of this provider has one audience; other issuers put several into a token.
        jwt(ctx, token, { payload }) {
          const all = new URL(token.resourceServer.identifier()).searchParams.getAll('audience');
          if (all.length > 1) payload.aud = all;
        },
      },
    },
    issueRefreshToken: () => true,
    jwks: { keys: keys() },
    rotateRefreshToken: true,
    scopes: ['openid', 'offline_access', 'runs'],
  });
  made.on('server_error', (ctx, error) => console.error(error));
  return made;
}

/** Asks the issuer's own token endpoint. */
function tokenEndpoint(fields) {
  const body = new URLSearchParams({ ...CLIENT, ...fields }).toString();
  const headers = { 'content-type': 'application/x-www-form-urlencoded' };
  return new Promise((resolve, reject) => {
    const request = https.request(`${issuer}/token`, { ca, headers, method: 'POST' }, (answer) => {
      let text = '';
      answer.on('data', (chunk) => { text += chunk; });
      answer.on('end', () => {
        const tokens = JSON.parse(text);
        if (answer.statusCode === 200) resolve(tokens); else reject(new Error(text));
      });
    });
    request.on('error', reject);
    request.end(body);
  });
}

const offers = {
  /** An access token and an ID token of a member, by a refresh token of a login that was. */
  async member({ member, ...what }) {
    const uri = resource(what);
    const grant = new current.Grant({ clientId: CLIENT.client_id, accountId: member });
    grant.addOIDCScope('openid offline_access');
    grant.addResourceScope(uri, 'runs');
    const refresh = new current.RefreshToken({
      accountId: member,
      authTime: Math.floor(Date.now() / 1000),
      client: await current.Client.find(CLIENT.client_id),
      grantId: await grant.save(),
      gty: 'authorization_code',
      nonce: randomUUID(),
      resource: uri,
      scope: 'openid offline_access runs',
    });
    const refresh_token = await refresh.save();
    return tokenEndpoint({ grant_type: 'refresh_token', refresh_token, resource: uri });
  },
  /** An access token of the client itself. */
  client: (what) => tokenEndpoint({
    grant_type: 'client_credentials', resource: resource(what), scope: 'runs',
  }),
  /** Other keys, and none of those that were. */
  rotate() {
    current = provider(issuer);
    return {};
  },
  asked: () => Object.fromEntries(asked),
};

const asked = new Map();
let current;
let issuer;

const listener = https.createServer({ cert, key }, (request, response) => {
  const path = request.url.split('?')[0];
  asked.set(path, (asked.get(path) ?? 0) + 1);
  current.callback()(request, response);
});

const beside = http.createServer(async (request, response) => {
  try {
    let text = '';
    for await (const chunk of request) text += chunk;
    response.end(JSON.stringify(await offers[request.url.slice(1)](JSON.parse(text))));
  } catch (error) {
    response.statusCode = 500;
    response.end(String(error.stack));
  }
});

const listen = (server, at) => new Promise((done, failed) => {
  server.on('error', failed);
  server.listen(at, '127.0.0.1', () => done(server.address().port));
});
issuer = `https://127.0.0.1:${await listen(listener, Number(port))}`;
current = provider(issuer);
console.log(`ready ${JSON.stringify({ issuer, beside: await listen(beside, 0) })}`);
