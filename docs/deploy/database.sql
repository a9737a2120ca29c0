-- Creates the user of a store, who is not a superuser, the role that only reads, and the database.
-- Once, as a superuser of the server: STORE_PASSWORD=... psql -f database.sql
\set ON_ERROR_STOP on
\set password `printenv STORE_PASSWORD`
CREATE ROLE backstitch LOGIN PASSWORD :'password';
CREATE ROLE backstitch_reader;
GRANT backstitch_reader TO backstitch WITH ADMIN OPTION;
CREATE DATABASE sessions OWNER backstitch;
