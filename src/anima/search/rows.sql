-- What the index says to a home's database (rows.py), each text beneath its name; [own] are the rows of this home.

-- made
select epoch, made_for, generation, last_part, last_document from anima.made where [own]

-- begin
insert into anima.made values(%(tenant)s, %(home)s, '', '', 0, 0, 0) on conflict do nothing

-- begin_again
update anima.made set epoch = anima.moment(), made_for = %(of)s, generation = 0 where [own]

-- known
select path, digest from anima.document where [own] order by path

-- since
with this as (select * from anima.made where [own]),
seen as (select case when epoch = %(epoch)s then %(part)s else 0 end as part,
    case when epoch = %(epoch)s then %(document)s else 0 end as document from this)
select 0, last_part, last_document, generation, epoch, made_for, null, null::bytea, null::bytea from this
union all select 1, id, day, null, path, kind, layer, null, null from anima.document
    where [own] and id > (select document from seen)
union all select 2, id, document, null, null, null, null, packed, vectors from anima.part
    where [own] and id > (select part from seen)
union all select 3, id, document, null, null, null, null, null, null from anima.part
    where [own] and id <= (select part from seen)

-- parts
select d.path, p.id from anima.document d join anima.part p
on p.tenant = d.tenant and p.home = d.home and p.document = d.id
where [own d] and d.path = any(%(paths)s) order by p.id

-- shown
select p.id, d.digest, p.said from anima.part p join anima.document d
on d.tenant = p.tenant and d.home = p.home and d.id = p.document
where [own p] and p.id = any(%(parts)s)

-- ids
select path, id from anima.document where [own] and path = any(%(paths)s)

-- put_document
insert into anima.document values(%(tenant)s, %(home)s, %(id)s, %(path)s, %(digest)s, %(kind)s, %(layer)s, %(day)s)

-- put_part
insert into anima.part values(%(tenant)s, %(home)s, %(id)s, %(document)s, %(packed)s, %(vectors)s, %(said)s)

-- digest
update anima.document set digest = %(digest)s where [own] and path = %(path)s

-- drop_parts
delete from anima.part where [own] and id = any(%(gone)s)

-- drop_documents
delete from anima.document where [own] and path = any(%(paths)s)

-- drop
delete from anima.document where [own] and path = any(%(paths)s) returning id

-- drop_parts_of
delete from anima.part where [own] and document = any(%(gone)s)

-- next
update anima.made set generation = generation + %(step)s, last_part = last_part + %(parts)s,
last_document = last_document + %(documents)s where [own]
