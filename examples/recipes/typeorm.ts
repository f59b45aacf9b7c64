// TypeORM on the pool of `pg.ts`, with the username and password of a mounted Secret.
import pg from 'pg';
import type { CredentialFiles } from 'resilient-watcher';
import { DataSource } from 'typeorm';
import type { PostgresDataSourceOptions } from 'typeorm/driver/postgres/PostgresDataSourceOptions.js';

import { RotatingPool } from './pg.js';

/** @param options of `DataSource`, without username and password */
export function createDataSource(
  login: CredentialFiles,
  options: Omit<PostgresDataSourceOptions, 'type' | 'driver'>,
): DataSource {
  const Pool = class extends RotatingPool {
    constructor(config: pg.PoolConfig) {
      super(login, config);
    }
  };
  return new DataSource({ ...options, type: 'postgres', driver: { ...pg, Pool } });
}
