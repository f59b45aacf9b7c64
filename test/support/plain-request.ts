import { request, type RequestOptions } from 'node:http';

/** One request on a connection of its own; resolves with its body, rejects for anything but 200. */
export function get(options: RequestOptions): Promise<string> {
  return new Promise((resolve, reject) => {
    const sent = request({ path: '/', agent: false, ...options }, (response) => {
      let body = '';
      response.setEncoding('utf8').on('data', (chunk: string) => (body += chunk));
      response.on('end', () => {
        if (response.statusCode === 200) resolve(body);
        else reject(new Error(`status ${response.statusCode}`));
      });
    });
    sent.on('error', reject).end();
  });
}
