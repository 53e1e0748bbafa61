// Node's drivers and mappers, each with what an application does; one line of JSON says what came.
'use strict';
require('reflect-metadata');
const fs = require('fs'), os = require('os'), path = require('path');
const {pipeline} = require('stream/promises'), {Readable} = require('stream');

const url = process.argv[2];
const pause = (ms) => new Promise((done) => setTimeout(done, ms));
const told = {};
async function step(name, work) {
  try { told[name] = await work(); }
  catch (error) { told[name] = `FAIL ${error.message} ${error.sql || error.query || ''}`; }
}

async function pg() {
  const {Client} = require('pg');
  const QueryStream = require('pg-query-stream'), copy = require('pg-copy-streams');
  const client = new Client(url), other = new Client(url), heard = [];
  await client.connect();
  await other.connect();
  await step('pg types', async () => {
    await client.query('create table pg1 (id serial primary key, a text, j jsonb, ts timestamptz, n numeric, arr int[], b bytea)');
    const values = ['x', {q: 1}, new Date(0), '1.50', [1, 2], Buffer.from('hi')];
    return (await client.query('insert into pg1 (a,j,ts,n,arr,b) values ($1,$2,$3,$4,$5,$6) returning *', values)).rows;
  });
  await step('pg prepared', async () => (await client.query({name: 'q', text: 'select a, n from pg1 where id = $1', values: [1]})).rows);
  await step('pg stream', async () => {
    let rows = 0;
    for await (const _ of client.query(new QueryStream('select * from generate_series(1, 250) g', [], {batchSize: 50}))) rows++;
    return rows;
  });
  await step('pg copy', async () => {
    await pipeline(Readable.from(['9\tcopied\n']), client.query(copy.from('copy pg1 (id, a) from stdin')));
    let text = '';
    for await (const chunk of client.query(copy.to('copy (select id, a from pg1 order by id) to stdout'))) text += chunk;
    return text;
  });
  await step('pg listen', async () => {
    client.on('notification', (message) => heard.push([message.channel, message.payload]));
    await client.query('listen ev');
    await other.query("notify ev, 'p1'");
    await other.query("select pg_notify('ev', 'p2')");
    for (let i = 0; i < 100 && heard.length < 2; i++) await pause(20);
    return heard;
  });
  await step('pg error', () => client.query('insert into pg1 (id) values (1)').catch((e) => [e.code, e.constraint, e.detail]));
  await client.end();
  await other.end();
}

async function postgres() {
  const sql = require('postgres')(url, {onnotice() {}});
  await step('postgres types', async () => [...await sql`select 1::int8 as a, ${[1, 2, 3]}::int[] as arr, ${{a: 1}}::jsonb as j`]);
  await step('postgres transaction', async () => {
    await sql`create table ps1 (id int generated always as identity primary key, a text, n int)`;
    return sql.begin(async (t) => {
      const rows = await t`insert into ps1 ${t([{a: 'x', n: 1}, {a: 'y', n: 2}])} returning id`;
      await t.savepoint((s) => s`update ps1 set n = n + 1 where a = 'x'`);
      return [...rows];
    });
  });
  await step('postgres cursor', async () => {
    let rows = 0;
    await sql`select * from generate_series(1, 95) g`.cursor(10, (some) => { rows += some.length; });
    return rows;
  });
  await step('postgres listen', async () => {
    const heard = [];
    await sql.listen('n1', (payload) => heard.push(payload));
    await sql.notify('n1', 'hey');
    for (let i = 0; i < 100 && heard.length < 1; i++) await pause(20);
    return heard;
  });
  await step('postgres in', async () => [...await sql`select a from ps1 where a in ${sql(['x', 'y'])} and n = any(${[2]}) order by a`]);
  await sql.end();
}

async function knex() {
  const db = require('knex')({client: 'pg', connection: url});
  await step('knex schema', async () => {
    await db.schema.createTable('ka', (t) => {
      t.increments('id'); t.string('name').notNullable().unique(); t.enu('kind', ['a', 'b']); t.timestamps(true, true);
      t.decimal('p', 10, 2); t.jsonb('j'); t.uuid('u');
    });
    await db.schema.createTable('kb', (t) => { t.bigIncrements(); t.integer('ka_id').references('ka.id').onDelete('cascade'); });
    await db.schema.alterTable('ka', (t) => { t.string('extra').defaultTo('q'); t.renameColumn('p', 'price'); t.dropColumn('u'); });
    return [await db.schema.hasTable('ka'), await db.schema.hasColumn('ka', 'name'), Object.keys(await db('ka').columnInfo())];
  });
  await step('knex rows', async () => {
    await db('ka').insert([{name: 'x', kind: 'a', price: 1}, {name: 'y', kind: 'b', price: 2}]).returning('*');
    await db('ka').insert({name: 'x', price: 9}).onConflict('name').merge();
    await db('kb').insert({ka_id: 1});
    await db.transaction(async (t) => { await t('ka').where({id: 1}).forUpdate().select(); await t('ka').where({id: 1}).increment('price', 1); });
    return db('ka').join('kb', 'ka.id', 'kb.ka_id').select('ka.name', 'ka.price');
  });
  await step('knex migrate', async () => {
    const migrationSource = {
      getMigrations: async () => ['m1', 'm2'], getMigrationName: (m) => m,
      getMigration: async (m) => ({up: (k) => k.schema.createTable(`t_${m}`, (t) => { t.increments(); t.text('a'); }), down: (k) => k.schema.dropTable(`t_${m}`)}),
    };
    return [await db.migrate.latest({migrationSource}), await db.migrate.rollback({migrationSource})];
  });
  await db.destroy();
}

async function typeorm() {
  const {DataSource, EntitySchema} = require('typeorm');
  const Cat = new EntitySchema({
    name: 'Cat', tableName: 'to_cat',
    columns: {id: {type: 'int', primary: true, generated: 'increment'}, name: {type: 'varchar', unique: true}, tags: {type: 'text', array: true, nullable: true}},
    relations: {owner: {type: 'many-to-one', target: 'Owner', joinColumn: true, cascade: true}},
  });
  const Owner = new EntitySchema({
    name: 'Owner', tableName: 'to_owner', columns: {id: {type: 'int', primary: true, generated: 'increment'}, name: {type: 'text'}},
    relations: {cats: {type: 'one-to-many', target: 'Cat', inverseSide: 'owner'}},
  });
  const db = new DataSource({type: 'postgres', url, entities: [Cat, Owner], synchronize: true});
  await db.initialize();
  const cats = db.getRepository('Cat');
  await step('typeorm rows', async () => {
    const cat = await cats.save({name: 'tom', tags: ['a'], owner: {name: 'ann'}});
    await cats.upsert({name: 'tom', tags: ['z']}, ['name']);
    const found = await cats.find({relations: {owner: true}});
    return [cat.id, found.map((each) => [each.name, each.tags, each.owner && each.owner.name])];
  });
  await step('typeorm lock', () => db.transaction(async (manager) => {
    const cat = await manager.findOne('Cat', {where: {name: 'tom'}, lock: {mode: 'pessimistic_write'}});
    cat.name = 'tim';
    await manager.save('Cat', cat);
    return cat.name;
  }));
  await step('typeorm again', async () => { await db.synchronize(); return cats.count(); });
  await step('typeorm remove', async () => { await cats.remove(await cats.findOneBy({name: 'tim'})); return cats.count(); });
  await db.destroy();
}

async function drizzle() {
  const {drizzle: open} = require('drizzle-orm/node-postgres'), {migrate} = require('drizzle-orm/node-postgres/migrator');
  const {pgTable, serial, text, integer} = require('drizzle-orm/pg-core'), {eq, sql, count} = require('drizzle-orm');
  const {Pool} = require('pg');
  const pool = new Pool({connectionString: url}), db = open(pool);
  const users = pgTable('dz_user', {id: serial('id').primaryKey(), name: text('name').notNull().unique(), age: integer('age')});
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'drizzle-'));
  fs.mkdirSync(path.join(folder, 'meta'));
  fs.writeFileSync(path.join(folder, '0000_a.sql'), 'create table dz_user (id serial primary key, name text not null unique);\n--> statement-breakpoint\nalter table dz_user add column age int;');
  fs.writeFileSync(path.join(folder, 'meta', '_journal.json'), JSON.stringify({version: '7', dialect: 'postgresql', entries: [{idx: 0, version: '7', when: 1, tag: '0000_a', breakpoints: true}]}));
  await step('drizzle migrate', async () => { await migrate(db, {migrationsFolder: folder}); await migrate(db, {migrationsFolder: folder}); return true; });
  fs.rmSync(folder, {recursive: true});
  await step('drizzle rows', async () => {
    const made = await db.insert(users).values([{name: 'a', age: 1}, {name: 'b'}]).returning({id: users.id});
    await db.insert(users).values({name: 'a', age: 5}).onConflictDoUpdate({target: users.name, set: {age: 5}});
    await db.transaction(async (t) => {
      await t.update(users).set({age: sql`${users.age} + 1`}).where(eq(users.name, 'a'));
      await t.select().from(users).for('update');
    });
    const groups = await db.select({n: users.name, c: count()}).from(users).groupBy(users.name).orderBy(users.name);
    return [made, groups, (await db.delete(users).returning({n: users.name, a: users.age})).sort((x, y) => (x.n < y.n ? -1 : 1))];
  });
  await pool.end();
}

async function sequelize() {
  const {Sequelize, DataTypes, Op} = require('sequelize');
  const db = new Sequelize(url, {logging: false});
  const Owner = db.define('Owner', {name: {type: DataTypes.STRING, unique: true}}, {tableName: 'sq_owner'});
  const Cat = db.define('Cat', {
    name: {type: DataTypes.STRING(40), allowNull: false}, mood: DataTypes.ENUM('happy', 'sad'), tags: DataTypes.ARRAY(DataTypes.TEXT),
    data: DataTypes.JSONB, weight: DataTypes.DECIMAL(10, 2), born: DataTypes.DATEONLY, span: DataTypes.RANGE(DataTypes.INTEGER),
  }, {tableName: 'sq_cat', timestamps: false, indexes: [{fields: ['name', 'mood'], name: 'sq_cat_both'}, {fields: ['born'], where: {mood: 'happy'}}]});
  Owner.hasMany(Cat, {foreignKey: 'owner_id', onDelete: 'CASCADE'});
  Cat.belongsTo(Owner, {foreignKey: 'owner_id'});
  await step('sequelize sync', async () => { await db.sync(); await db.sync(); await db.sync({alter: true}); return true; });
  await step('sequelize rows', async () => {
    const ann = await Owner.create({name: 'ann'});
    const values = {name: 'tom', mood: 'happy', tags: ['a', 'b'], data: {q: 1}, weight: '1.50', born: '2020-01-02', span: [1, 5], owner_id: ann.id};
    const tom = await Cat.create(values);
    await Cat.bulkCreate([{name: 'a'}, {name: 'b', mood: 'sad'}]);
    await tom.update({weight: '2.25'});
    await Owner.upsert({name: 'ann'});
    const found = await Cat.findAll({include: Owner, where: {tags: {[Op.contains]: ['a']}, data: {q: 1}}});
    return [tom.toJSON(), await Cat.count(), found.map((each) => [each.name, each.Owner.name])];
  });
  await step('sequelize transaction', () => db.transaction(async (t) => {
    const tom = await Cat.findOne({where: {name: 'tom'}, lock: true, transaction: t});
    await tom.increment('weight', {by: 1, transaction: t});
    return (await tom.reload({transaction: t})).weight;
  }));
  await step('sequelize catalog', async () => {
    const asked = db.getQueryInterface(), columns = await asked.describeTable('sq_cat');
    return [
      (await asked.showAllTables()).filter((each) => each.startsWith('sq_')).sort(),
      Object.entries(columns).map(([name, each]) => [name, each.type, each.allowNull, each.defaultValue, each.special.sort(), each.primaryKey]),
      (await asked.showIndex('sq_cat')).map((each) => [each.name, each.primary, each.unique, each.fields.map((field) => field.attribute)]).sort(),
      (await asked.getForeignKeyReferencesForTable('sq_cat')).map((each) => [each.constraintName, each.columnName, each.referencedTableName]),
    ];
  });
  await step('sequelize columns', async () => {
    const asked = db.getQueryInterface();
    await asked.addColumn('sq_cat', 'more', {type: DataTypes.INTEGER, defaultValue: 3});
    await asked.changeColumn('sq_cat', 'more', {type: DataTypes.BIGINT});
    await asked.renameColumn('sq_cat', 'more', 'other');
    await asked.removeColumn('sq_cat', 'other');
    return [await Cat.destroy({where: {mood: null}}), await Owner.destroy({where: {}}), await Cat.count()];
  });
  await step('sequelize drop', async () => { await Cat.drop({}); await Owner.drop({}); return (await db.getQueryInterface().showAllTables()).filter((each) => each.startsWith('sq_')); });
  await db.close();
}

(async () => {
  for (const each of [pg, postgres, knex, typeorm, sequelize, drizzle]) await each();
  console.log(JSON.stringify(told));
})();
